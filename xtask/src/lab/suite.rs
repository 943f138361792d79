//! `cargo xtask lab test`: the suite, on every machine that it needs.
//!
//! All cases for one machine run in one boot, one after the other.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::cases::{self, Case, On};
use super::guest::{Ended, Guest, Stream};
use super::kernel::Kernel;
use super::machine::{Machine, Mode};
use super::modules;
use super::package::Flavour;
use super::stage::Job;
use super::tools;
use super::trouble::Interrupt;
use crate::process::{End, Outcome};
use crate::{Result, cargo};

/// A machine that has not done all its cases by then hangs.
const TIMEOUT: Duration = Duration::from_secs(600);

/// A case that takes longer hangs, in seconds of the guest.
const CASE_LIMIT: u32 = 150;

/// In MB: the programs lie in memory, twice while the kernel unpacks them.
const MEMORY: u32 = 1536;

/// The machines of a quick run: what they do takes equally long on a busy host, and repeats.
const QUICK: [On; 2] = [On::Counted, On::CountedTwo];

/// What the words after `lab test` select.
#[derive(Debug, Default, PartialEq, Eq)]
struct Selection {
    quick: bool,
    flavour: Option<Flavour>,
}

impl Selection {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut selection = Self::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match (word.as_str(), words.len()) {
                ("--quick", _) => selection.quick = true,
                ("--kernel", 1..) => {
                    selection.flavour = words.next().map(|name| Flavour::named(name)).transpose()?;
                }
                _ => return Err("usage: cargo xtask lab test [--quick] [--kernel NAME]".into()),
            }
        }
        match selection.flavour {
            Some(flavour) if On::ALL.iter().all(|on| on.flavour() != flavour) => {
                Err(format!("the suite has no machine with the kernel `{}`", flavour.name()).into())
            }
            _ => Ok(selection),
        }
    }

    fn machines(&self) -> impl Iterator<Item = On> {
        On::ALL.into_iter().filter(|on| {
            self.flavour.map_or(!self.quick || QUICK.contains(on), |flavour| {
                on.flavour() == flavour && (!self.quick || on.counted())
            })
        })
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<i32> {
    let selection = Selection::parse(arguments)?;
    let skip = |error| {
        println!("\n*** LAB SKIPPED: NOTHING WAS TESTED UNDER PREEMPT_RT. {error} ***\n");
        Ok(0)
    };
    if let Err(error) = tools::require([tools::QEMU, "setpriv", "busybox", "ldd"]) {
        return skip(error);
    }
    let begun = Instant::now();
    let interrupt = Interrupt::install()?;
    let mut kernels: Vec<(Flavour, Kernel)> = Vec::new();
    let mut without = Vec::new();
    for on in selection.machines() {
        let flavour = on.flavour();
        if without.contains(&flavour) || kernels.iter().any(|(had, _)| *had == flavour) {
            continue;
        }
        // A kernel that takes minutes to build is used if it is there, or asked for.
        if flavour.is_built() && selection.flavour.is_none() && Kernel::cached(flavour).is_none() {
            without.push(flavour);
            continue;
        }
        match Kernel::get(flavour, &interrupt) {
            // Not every system that checks a merge has the package; who asks for the whole suite wants to know why.
            Err(error) if selection.quick => {
                interrupt.check()?;
                return skip(error);
            }
            other => kernels.push((flavour, other?)),
        }
    }
    // Everything at once: a selection of targets could be built with other features, and once more.
    let built = cargo::build(cargo::command().args(["test", "--workspace", "--no-run"]))?;
    let cases = cases::all(&built)?;

    let mut failures = 0;
    for on in selection.machines() {
        let Some((_, kernel)) = kernels.iter().find(|(flavour, _)| *flavour == on.flavour()) else {
            continue;
        };
        let suite = Suite { kernel, interrupt: &interrupt };
        let cases: Vec<&Case> = cases.iter().filter(|case| case.on.contains(&on)).collect();
        failures += suite.on(on, &cases)?;
    }

    for flavour in without {
        let name = flavour.name();
        println!("\n*** SKIPPED: THE CASES FOR `{name}`. `cargo xtask lab kernel {name}` BUILDS IT ***\n");
    }
    let used: Vec<&str> = kernels.iter().map(|(_, kernel)| kernel.package.as_str()).collect();
    println!("lab: {}, {} s", used.join(", "), begun.elapsed().as_secs());
    if failures > 0 {
        return Err(format!("failed cases: {failures}").into());
    }
    println!("lab: all as expected");
    Ok(0)
}

struct Suite<'a> {
    kernel: &'a Kernel,
    interrupt: &'a Interrupt,
}

impl Suite<'_> {
    /// Runs `cases` on one machine; returns how many failed.
    fn on(&self, on: On, cases: &[&Case]) -> Result<usize> {
        let machine = Machine { cpus: on.cpus(), memory: MEMORY, counted: on.counted() };
        let ended = self.boot(machine, cases)?;
        println!("{:16} booted in {:.1} s", on.name(), ended.boot.as_secs_f64());
        let mut failures = 0;
        for (number, case) in cases.iter().enumerate() {
            let verdict = outcome(&ended.results, number).and_then(|outcome| (case.judge)(&outcome));
            failures += note(on, &case.name, verdict);
        }
        if on.counted() {
            let again = self.boot(machine, cases)?;
            for (number, case) in cases.iter().enumerate() {
                failures += note(on, &format!("{}, again", case.name), same(&ended, &again, number));
            }
            let (once, twice) = (ended.console.counted(), again.console.counted());
            let verdict = if once == twice { Ok(()) } else { Err(format!("{once}\n{twice}").into()) };
            failures += note(on, "the console, again", verdict);
        }
        Ok(failures)
    }

    fn boot(&self, machine: Machine, cases: &[&Case]) -> Result<Ended> {
        let mode = if machine.counted { Mode::Late } else { Mode::Share };
        let guest = Guest { machine, kernel: self.kernel, mode, timeout: TIMEOUT, interrupt: self.interrupt };
        let mut unexpected = String::new();
        let mut sink = |_: Stream, bytes: &[u8]| unexpected += &String::from_utf8_lossy(bytes);
        let mut job = job(cases);
        if self.kernel.has_build_tree() {
            job.modules = modules::get(self.kernel, self.interrupt)?;
        }
        let ended = guest.run(&job, &mut sink, &|_| Ok(()))?;
        if let Some(line) = ended.console.out_of_memory() {
            return Err(format!("the guest ran out of its {MEMORY} MB of memory: {line}").into());
        }
        if ended.status != 0 || !unexpected.is_empty() {
            return Err(
                format!("the guest could not run the suite: status {}\n{unexpected}", ended.status).into()
            );
        }
        Ok(ended)
    }
}

/// Prints how a case has gone; returns how many failures that is.
fn note(on: On, case: &str, verdict: Result) -> usize {
    match verdict {
        Ok(()) => println!("{:16} {case:36} ok", on.name()),
        Err(ref error) => println!("{:16} {case:36} FAILED: {error}", on.name()),
    }
    usize::from(verdict.is_err())
}

/// Whether the case of this number did the same in two runs, to the byte.
fn same(once: &Ended, again: &Ended, number: usize) -> Result {
    let (once, again) = (outcome(&once.results, number)?, outcome(&again.results, number)?);
    if once.end == again.end && once.stdout == again.stdout && once.stderr == again.stderr {
        return Ok(());
    }
    Err(format!("{}{}\n--- again:\n{}{}", once.stdout, once.stderr, again.stdout, again.stderr).into())
}

/// The job that runs `cases` in turn, and leaves what each did in `<number>.stdout`, `.stderr` and `.status`.
fn job(cases: &[&Case]) -> Job {
    let mut job = Job { command: vec!["sh".to_owned(), "/lab/bin/suite".to_owned()], ..Job::default() };
    // Programs write to memory, since a wait for the host's file would be part of what is tested.
    let mut suite = "mkdir /tmp/case\n".to_owned();
    for (number, case) in cases.iter().enumerate() {
        let script = format!("case-{number}");
        suite += &format!(
            "cd /tmp/case && timeout -s KILL {CASE_LIMIT} sh /lab/bin/{script} >/tmp/stdout 2>/tmp/stderr\n\
             echo $? >/tmp/status\nfor part in stdout stderr status; do mv /tmp/$part /results/{number}.$part; done\n"
        );
        job.scripts.push((script, case.script.clone()));
        for program in &case.programs {
            if !job.programs.contains(program) {
                job.programs.push(program.clone());
            }
        }
    }
    job.scripts.push(("suite".to_owned(), suite));
    job
}

/// What the case of this number did.
fn outcome(results: &Path, number: usize) -> Result<Outcome> {
    let part = |name: &str| {
        let bytes = fs::read(results.join(format!("{number}.{name}")));
        bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(|_| "it was not run")
    };
    let end = match part("status")?.trim().parse()? {
        // How a shell says that a signal has ended its child.
        status @ 129..160 => End::Signalled(status - 128),
        status => End::Exited(status),
    };
    Ok(Outcome { stdout: part("stdout")?, stderr: part("stderr")?, end })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn reads_what_a_case_did() {
        let scratch = Scratch::new("outcome").unwrap();
        for (name, text) in [("stdout", "out\n"), ("stderr", ""), ("status", "137\n")] {
            fs::write(scratch.path().join(format!("4.{name}")), text).unwrap();
        }
        let outcome = outcome(scratch.path(), 4).unwrap();
        assert_eq!(outcome.stdout, "out\n");
        assert_eq!(outcome.end, End::Signalled(9));
        assert!(super::outcome(scratch.path(), 5).is_err());
    }

    #[test]
    fn a_kernel_selects_its_machines() {
        let parse =
            |line: &str| Selection::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        let machines = |line| parse(line).unwrap().machines().collect::<Vec<_>>();
        assert_eq!(machines(""), On::ALL);
        assert_eq!(machines("--quick"), QUICK);
        assert_eq!(machines("--kernel rt-probe"), [On::ProbeCounted, On::ProbeTwo]);
        assert_eq!(machines("--quick --kernel rt-probe"), [On::ProbeCounted]);
        assert!(parse("--kernel").is_err() && parse("--slow").is_err() && parse("--kernel windows").is_err());
        assert!(
            parse("--kernel stock").unwrap_err().to_string().contains("no machine with the kernel `stock`")
        );
    }

    #[test]
    fn a_program_of_several_cases_is_packed_once() {
        let case = || Case {
            name: "x".to_owned(),
            on: &On::ALL,
            script: "exec x".to_owned(),
            programs: vec!["/bin/x".into()],
            judge: Box::new(|_| Ok(())),
        };
        let (one, two) = (case(), case());
        let job = job(&[&one, &two]);
        assert_eq!(job.programs.len(), 1);
        assert_eq!(job.scripts.len(), 3);
    }
}
