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

pub(crate) fn run(arguments: &[String]) -> Result<i32> {
    let quick = match arguments {
        [] => false,
        [flag] if flag == "--quick" => true,
        _ => return Err("usage: cargo xtask lab test [--quick]".into()),
    };
    let skip = |error| {
        println!("\n*** LAB SKIPPED: NOTHING WAS TESTED UNDER PREEMPT_RT. {error} ***\n");
        Ok(0)
    };
    if let Err(error) = tools::require([tools::QEMU, "setpriv", "busybox", "ldd"]) {
        return skip(error);
    }
    let begun = Instant::now();
    let interrupt = Interrupt::install()?;
    let kernel = match Kernel::get(Flavour::Rt, &interrupt) {
        // Not every system that checks a merge has the package; who asks for the whole suite wants to know why.
        Err(error) if quick => {
            interrupt.check()?;
            return skip(error);
        }
        other => other?,
    };
    // Everything at once: a selection of targets could be built with other features, and once more.
    let built = cargo::build(cargo::command().args(["test", "--workspace", "--no-run"]))?;
    let cases = cases::all(&built)?;

    let suite = Suite { kernel: &kernel, interrupt: &interrupt };
    let mut failures = 0;
    for on in On::ALL.into_iter().filter(|on| !quick || QUICK.contains(on)) {
        let cases: Vec<&Case> = cases.iter().filter(|case| case.on.contains(&on)).collect();
        failures += suite.on(on, &cases)?;
    }

    println!("lab: {}, {} s", kernel.package, begun.elapsed().as_secs());
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
        let ended = guest.run(&job(cases), &mut sink, &|_| Ok(()))?;
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
        if let Some(program) = &case.program
            && !job.programs.contains(program)
        {
            job.programs.push(program.clone());
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
    fn a_program_of_several_cases_is_packed_once() {
        let case = || Case {
            name: "x".to_owned(),
            on: &On::ALL,
            script: "exec x".to_owned(),
            program: Some("/bin/x".into()),
            judge: Box::new(|_| Ok(())),
        };
        let (one, two) = (case(), case());
        let job = job(&[&one, &two]);
        assert_eq!(job.programs.len(), 1);
        assert_eq!(job.scripts.len(), 3);
    }
}
