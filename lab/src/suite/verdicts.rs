//! The results of a suite: one line per case, and the output of failed ones in a file.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use xtask_support::process::Outcome;
use xtask_support::{Result, counted};

use crate::trouble::Trouble;
use crate::workdir::{self, at};

/// The length of a failure message on the terminal; the file contains all of it.
const SHOWN: usize = 40;

/// The results so far.
pub(crate) struct Verdicts {
    directory: PathBuf,
    failures: usize,
    skipped: usize,
}

impl Verdicts {
    /// Creates an empty set, and removes the output of earlier failures.
    pub(crate) fn new() -> Result<Self> {
        Self::below(workdir::cache().join("failed"))
    }

    fn below(directory: PathBuf) -> Result<Self> {
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(at(&directory)(error).into()),
            _ => Ok(Self { directory, failures: 0, skipped: 0 }),
        }
    }

    /// Prints the result of `case` on `machine`, and stores its output if it failed.
    pub(crate) fn note(
        &mut self,
        machine: &str,
        case: &str,
        took: Option<Duration>,
        outcome: Option<&Outcome>,
        verdict: Result<String>,
    ) -> Result {
        let took = took.map_or(String::new(), |took| format!("{:.1} s", took.as_secs_f64()));
        let line = format!("{machine:16} {case:46} {took:>7} ");
        match verdict {
            Ok(printed) => println!("{line} ok {printed}"),
            Err(error) => {
                self.failures += 1;
                let printed = outcome.map_or(String::new(), |Outcome { end, stdout, stderr }| {
                    format!("\n--- {end}\n--- stdout\n{stdout}--- stderr\n{stderr}")
                });
                let text = format!("{error}{printed}");
                println!("{line} FAILED: {}", shortened(&text));
                let file = self.keep(machine, case, &text)?;
                println!("{:16} full output: {}", "", file.display());
            }
        }
        Ok(())
    }

    /// Prints that `case` is skipped.
    pub(crate) fn skip(&mut self, machine: &str, case: &str, why: &str) {
        self.skipped += 1;
        println!("{machine:16} {case:46} {:>7}  SKIPPED: {why}", "");
    }

    /// Stores the `results` of a machine that has failed as a whole.
    pub(crate) fn rescue(&self, machine: &str, results: &Path) -> Result {
        let directory = self.directory.join(file_name(machine)).join("results");
        if workdir::move_contents(results, &directory)? > 0 {
            eprintln!("lab: the output of the cases so far is in {}", directory.display());
        }
        Ok(())
    }

    fn keep(&self, machine: &str, case: &str, text: &str) -> Result<PathBuf> {
        let directory = self.directory.join(file_name(machine));
        fs::create_dir_all(&directory).map_err(at(&directory))?;
        let file = directory.join(file_name(case)).with_extension("txt");
        fs::write(&file, format!("{machine}: {case}\n{text}\n")).map_err(at(&file))?;
        Ok(file)
    }

    /// Prints the skipped cases; the error contains the number of failures.
    pub(crate) fn conclude(&self) -> Result {
        if self.skipped > 0 {
            println!("\n*** SKIPPED: {} ***", counted(self.skipped, "case"));
        }
        match self.failures {
            0 => Ok(()),
            failures => Err(Trouble::Failed(format!("failed cases: {failures}")).into()),
        }
    }
}

/// Returns the beginning and the end of a long text.
fn shortened(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= SHOWN {
        return text.to_owned();
    }
    let (begin, end) = (&lines[..SHOWN / 2], &lines[lines.len() - SHOWN / 2..]);
    format!("{}\n[… {} lines …]\n{}", begin.join("\n"), lines.len() - SHOWN, end.join("\n"))
}

/// Replaces the characters of `name` that a file name should not contain.
fn file_name(name: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    name.chars().map(fit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask_support::process::End;
    use xtask_support::scratch::Scratch;

    #[test]
    fn keeps_all_output_of_failed_cases() {
        let scratch = Scratch::new("verdicts").unwrap();
        let directory = scratch.path().join("failed");
        let mut verdicts = Verdicts::below(directory.clone()).unwrap();
        let long: String = (0..200).map(|n| format!("line {n}\n")).collect();
        let outcome = Outcome { stdout: long, stderr: "why\n".to_owned(), end: End::Signalled(6) };
        verdicts.note("2 CPUs", "kill -9", None, Some(&outcome), Ok(String::new())).unwrap();
        verdicts.conclude().unwrap();
        verdicts.note("2 CPUs", "stress", None, Some(&outcome), Err("it failed".into())).unwrap();
        let cached = fs::read_to_string(directory.join("2-CPUs/stress.txt")).unwrap();
        for part in ["it failed", "signal 6", "line 0\n", "line 100\n", "line 199\n", "why\n"] {
            assert!(cached.contains(part), "no `{part}` in {cached}");
        }
        assert_eq!(fs::read_dir(directory.join("2-CPUs")).unwrap().count(), 1);
        let failed = verdicts.conclude().unwrap_err();
        assert_eq!((failed.to_string().as_str(), Trouble::status(failed.as_ref())), ("failed cases: 1", 1));
        assert_eq!(Verdicts::below(directory.clone()).unwrap().failures, 0);
        assert!(!directory.exists());
    }

    #[test]
    fn elides_middle_of_long_text() {
        let long: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let short = shortened(&long);
        assert!(short.contains("line 19\n[… 60 lines …]\nline 80"), "{short}");
        assert_eq!(shortened("a\nb"), "a\nb");
    }
}
