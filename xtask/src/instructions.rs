//! `cargo xtask check instructions`: counts the instructions of spawning and locking, and compares
//! the counts with the recorded ones.
//!
//! The counts come from valgrind's callgrind, which executes the program as it is and counts every
//! instruction. Two runs of a row with different numbers of operations differ by the instructions
//! of the operations. An operation calls no function outside of this workspace, so its count
//! contains no function of the C library chosen by processor features, and it is the same on every
//! machine and under any load. The remaining difference between two runs, from the kernel and the
//! program's start, is far below one instruction per operation.
//!
//! Each row is counted twice. In the first count, locked instructions change the partition's word.
//! In the second, *biased*, restartable sequences do, as on a machine that supports them
//! (`Config::rseq`). Valgrind does not support them, so `--cfg=punctual_counted` compiles a thread
//! record into the program that replaces the kernel's.
//!
//! Two more rows are the bytes of code that each further task adds to an app. They must not grow
//! with the number of tasks. `--compile-time` prints the CPU time of builds, which a load on the
//! machine changes, and compares nothing.
//!
//! The counts are exact, so the tolerance is 0, but only for the compiler that the file names. With
//! another compiler nothing is compared, and a line of output reports this.

mod compile_time;
pub(crate) mod period;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSection};
use punctual_process::child::BoundedCommand;

use crate::process::{INSTALL_LIMIT, TOOL_LIMIT};
use crate::{Result, cargo, golden, process};

const PACKAGE: &str = "punctual-instructions";
const FIGURES: &str = "xtask/instructions/figures.txt";

/// The numbers of operations in the two runs of a row.
const FEW: u64 = 1_000;
const MANY: u64 = 51_000;

/// The numbers of tasks of three apps. The bytes of code that each further task adds stand for the
/// time that it takes to compile, which a test cannot compare exactly.
const TASKS: [u64; 3] = [20, 40, 80];

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Print the CPU time of release builds of apps with 1 to 200 tasks, and count no instructions
    #[arg(long)]
    compile_time: bool,
}

/// Compares the counts with the file, or measures as requested.
pub(crate) fn check(options: &Options) -> Result {
    if options.compile_time { compile_time::run() } else { run(false) }
}

/// Counts, and compares with the file; or writes the file if `blessed`.
pub(crate) fn run(blessed: bool) -> Result {
    // By default rustix calls the vDSO in a way that valgrind does not support, so it is configured
    // to use the C library.
    let program = build("instructions", ("RUSTFLAGS", "--cfg=rustix_use_libc --cfg=punctual_counted"))?;
    let names = process::stdout(&mut Command::new(&program), TOOL_LIMIT)?;
    let mut measured = Vec::new();
    for (row, name) in names.lines().enumerate() {
        for (rseq, name) in [("0", name.to_owned()), ("1", format!("{name}, biased"))] {
            let count = |times| count(&program, row, times, rseq);
            let few = count(FEW)?;
            let each = per_operation(count(MANY)?.saturating_sub(few), MANY - FEW);
            println!("{each:6}  {name}");
            measured.push((name, each));
        }
    }
    let mut sizes = Vec::new();
    for tasks in TASKS {
        sizes.push(code_size(&program.with_file_name(format!("chain_{tasks}")))?);
    }
    let per_task = bytes_per_task(&sizes);
    for (tasks, &each) in TASKS.windows(2).zip(&per_task) {
        let name = format!("bytes of code for each task, {} to {} tasks", tasks[0], tasks[1]);
        println!("{each:6}  {name}");
        measured.push((name, each));
    }
    if !is_linear(&per_task) {
        return Err(format!("the code of an app grows faster than its number of tasks: {per_task:?}").into());
    }
    let compiler = cargo::rustc(&["--version"])?;
    let target = format!("{compiler}, {}", std::env::consts::ARCH);
    let path = cargo::root().join(FIGURES);
    if blessed {
        return Ok(fs::write(path, file(&target, &measured))?);
    }
    if let Some(other) = compare(&fs::read_to_string(path)?, &target, &measured)? {
        println!("*** instructions: NOT COMPARED: {FIGURES} is of {other}, and this is {target} ***");
    }
    Ok(())
}

/// Builds the program in its own directory, with this environment variable.
fn build(directory: &str, (name, value): (&str, &str)) -> Result<PathBuf> {
    let directory = cargo::target_dir().join(directory);
    let mut command = cargo::command();
    command.args(["build", "--locked", "--release", "--package", PACKAGE]);
    command.env("CARGO_TARGET_DIR", &directory).env(name, value);
    process::succeed(&mut command)?;
    Ok(directory.join("release").join(PACKAGE))
}

/// Returns the instructions of a whole run, with the given `PUNCTUAL_RSEQ`.
fn count(program: &Path, row: usize, times: u64, rseq: &str) -> Result<u64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
    command.args([row.to_string(), times.to_string()]).env("PUNCTUAL_RSEQ", rseq);
    let printed = run_valgrind(&mut command)?;
    let collected = printed.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    collected.ok_or_else(|| format!("{command:?} prints no count:\n{printed}").into())
}

/// Runs valgrind, and returns its messages.
fn run_valgrind(command: &mut Command) -> Result<String> {
    let output = command.output_within(INSTALL_LIMIT);
    let output =
        output.map_err(|error| format!("valgrind, which .ci/packages.sh --valgrind installs: {error}"))?;
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(printed) } else { Err(format!("{command:?} failed:\n{printed}").into()) }
}

/// Returns the instructions of one operation, rounded, from those of all `operations`.
fn per_operation(instructions: u64, operations: u64) -> u64 {
    (instructions + operations / 2) / operations
}

/// Returns the number of bytes of code in a program.
fn code_size(program: &Path) -> Result<u64> {
    let bytes = fs::read(program)?;
    let code = object::File::parse(&*bytes)?.section_by_name(".text").map(|section| section.size());
    code.ok_or_else(|| format!("{} has no section .text", program.display()).into())
}

/// Returns the number of bytes that each further task takes, from one app to the next.
fn bytes_per_task(sizes: &[u64]) -> Vec<u64> {
    let steps = TASKS.windows(2).zip(sizes.windows(2));
    steps.map(|(tasks, sizes)| sizes[1].saturating_sub(sizes[0]) / (tasks[1] - tasks[0])).collect()
}

/// Returns `true` if each further task takes no more code than the ones before, within 5 %.
fn is_linear(per_task: &[u64]) -> bool {
    per_task.windows(2).all(|each| each[1] * 20 <= each[0] * 21)
}

fn file(target: &str, measured: &[(String, u64)]) -> String {
    let rows: String = measured.iter().map(|(name, each)| format!("{each:6}  {name}\n")).collect();
    format!(
        "# Instructions of one operation with its loop, without the clock; xtask/src/instructions.rs says how they are counted.\n\
         # Written by `cargo xtask bless instructions`.\n{target}\n{rows}"
    )
}

/// Requires the recorded counts; returns the compiler of these if it is another one.
fn compare<'a>(recorded: &'a str, target: &str, measured: &[(String, u64)]) -> Result<Option<&'a str>> {
    let of = recorded.lines().find(|line| !line.starts_with('#')).unwrap_or_default();
    if of != target {
        return Ok(Some(of));
    }
    match golden::diff(recorded, &file(target, measured)) {
        None => Ok(None),
        Some(moved) => {
            Err(format!("{FIGURES}, which `cargo xtask bless instructions` writes, differs:\n{moved}").into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_slowdown_of_5_percent_in_each_row() {
        let recorded = fs::read_to_string(cargo::root().join(FIGURES)).unwrap();
        let mut lines = recorded.lines().filter(|line| !line.starts_with('#'));
        let target = lines.next().unwrap();
        let row = |line: &str| {
            let (each, name) = line.trim_start().split_once("  ")?;
            Some((name.to_owned(), each.parse().ok()?))
        };
        let whole: Vec<(String, u64)> = lines.filter_map(row).collect();
        assert!(whole.len() > 30, "{whole:?}");
        assert_eq!(compare(&recorded, target, &whole).unwrap(), None);
        for slow in 0..whole.len() {
            let mut measured = whole.clone();
            let (name, each) = &mut measured[slow];
            // At least one whole instruction.
            *each += (*each * 5).div_ceil(100);
            let added = format!("\n+{each:6}  {name}\n");
            let printed = compare(&recorded, target, &measured).unwrap_err().to_string();
            assert!(format!("{printed}\n").contains(&added), "{printed}");
        }
    }

    fn rows(each: &[(&str, u64)]) -> Vec<(String, u64)> {
        each.iter().map(|(name, each)| ((*name).to_owned(), *each)).collect()
    }

    #[test]
    fn detects_one_instruction_more_or_less_and_missing_rows() {
        let recorded = file("rustc 1, x", &rows(&[("spawn, same level", 90), ("lock", 7)]));
        let compared = |each: &[(&str, u64)]| compare(&recorded, "rustc 1, x", &rows(each));
        assert_eq!(compared(&[("spawn, same level", 90), ("lock", 7)]).unwrap(), None);
        for moved in [89, 91] {
            let printed = compared(&[("spawn, same level", moved), ("lock", 7)]).unwrap_err().to_string();
            assert!(printed.contains("\n-    90  spawn, same level\n"), "{printed}");
            assert!(printed.contains(&format!("\n+    {moved}  spawn, same level\n")), "{printed}");
        }
        assert!(compared(&[("spawn, same level", 90)]).is_err());
        assert!(compared(&[("spawn, same level", 90), ("lock", 7), ("wake", 3)]).is_err());
    }

    #[test]
    fn rejects_code_that_grows_faster_than_linearly() {
        assert_eq!(bytes_per_task(&[1_000, 21_000, 61_000]), [1_000, 1_000]);
        assert!(is_linear(&[1_000, 1_050]) && is_linear(&[1_000, 900]));
        assert!(!is_linear(&[1_000, 1_051]));
    }

    #[test]
    fn another_compiler_is_not_compared() {
        let recorded = file("rustc 1, x", &rows(&[("lock", 7)]));
        let other = compare(&recorded, "rustc 2, x", &rows(&[("lock", 8)])).unwrap();
        assert_eq!(other, Some("rustc 1, x"));
    }

    #[test]
    fn rounds_to_whole_instructions() {
        assert_eq!([8_949, 8_950, 9_049, 9_050].map(|all| per_operation(all, 100)), [89, 90, 90, 91]);
    }
}
