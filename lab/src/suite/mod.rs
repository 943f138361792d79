//! `cargo xtask lab test`: the suite, on every machine that it needs.
//!
//! All cases for a machine run in one boot, one after the other.

pub(crate) mod selection;
mod verdicts;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use xtask_support::process::{End, Outcome};
use xtask_support::{Result, cargo, counted, process};

use crate::arch::Arch;
use crate::cases::{self, Built, Case, Setup};
use crate::driver::board::{Board, cross_cargo};
use crate::driver::console;
use crate::driver::guest::{Ended, Guest, Stream};
use crate::driver::machine::{Machine, Mode};
use crate::driver::stage::{Job, quoted};
use crate::kernels::debs::RT_TESTS;
use crate::kernels::package::Flavour;
use crate::kernels::{Kernel, modules};
use crate::tools;
use crate::trouble::Interrupt;
use selection::Selection;
use verdicts::Verdicts;

/// The time limit of a machine for all its cases.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The time limit of a case, in seconds of the guest.
const CASE_LIMIT: u32 = 150;

/// In MB: the programs are in memory, twice while the kernel unpacks them.
const MEMORY: u32 = 1536;

pub(crate) fn run(selection: &Selection) -> Result<i32> {
    if let Some(host) = &selection.host {
        return board(host, selection);
    }
    let bench = cargo::target_dir().join("release/punctual");
    // Programs of the workspace, as built here, do not run on another processor.
    let is_foreign = selection.flavour.is_some_and(|flavour| flavour.arch() != Arch::Amd64);
    let cases = |built: Built<'_>| {
        if is_foreign {
            return Ok(cases::foreign());
        }
        cases::all(built, Some(&bench))
    };
    let chosen = |case: &Case| selection.has(case) && selection.machines().any(|on| case.runs_on(on));
    // First, because this needs neither a lab nor a build.
    if selection.lists(cases(None)?.iter().filter(|case| chosen(case)))? {
        return Ok(0);
    }
    if let Err(error) = tools::require([tools::QEMU, "setpriv", "busybox", "ldd"]) {
        return without_lab(error, tools::is_required());
    }
    let begun = Instant::now();
    let interrupt = Interrupt::install()?;
    let (kernels, without) = kernels(selection, &interrupt)?;
    let fetched = begun.elapsed();
    // Everything at once: a selection of targets could be built with other features, and therefore
    // again.
    let built = if is_foreign {
        Vec::new()
    } else {
        cargo::build(cargo::command().args(["test", "--workspace", "--no-run"]))?
    };
    let cases = cases(Some(&built))?;
    let programs: Vec<&PathBuf> =
        cases.iter().filter(|case| chosen(case)).flat_map(|case| &case.programs).collect();
    if programs.contains(&&bench) {
        cargo::build(cargo::command().args(["build", "--release", "-p", "punctual-cli"]))?;
    }
    if programs.contains(&&cases::devices::gimbal()) {
        cargo::build(cargo::command().args(["build", "--release", "-p", "gimbal"]))?;
    }
    if programs.iter().any(|program| RT_TESTS.has(program)) {
        RT_TESTS.get(&interrupt)?;
    }
    if programs.iter().any(|program| cases::offline::is_one(program)) {
        cases::offline::build()?;
    }
    let built = begun.elapsed() - fetched;

    let mut verdicts = Verdicts::new()?;
    for on in selection.machines() {
        let Some((_, kernel)) = kernels.iter().find(|(flavour, _)| *flavour == on.kernel) else {
            continue;
        };
        let suite = Suite { kernel, interrupt: &interrupt };
        let cases: Vec<&Case> = cases.iter().filter(|case| case.runs_on(on) && selection.has(case)).collect();
        if !cases.is_empty() {
            suite.on(on, &cases, &mut verdicts)?;
        }
    }

    for flavour in without {
        let name = flavour.name();
        println!("\n*** SKIPPED: THE CASES FOR `{name}`. `cargo xtask lab kernel {name}` GETS IT ***\n");
    }
    let used: Vec<&str> = kernels.iter().map(|(_, kernel)| kernel.package.as_str()).collect();
    println!(
        "lab: {}; {:.1} s to get the kernels, {:.1} s to build, {:.1} s in all",
        used.join(", "),
        fetched.as_secs_f64(),
        built.as_secs_f64(),
        begun.elapsed().as_secs_f64()
    );
    verdicts.conclude()?;
    println!("lab: all as expected");
    Ok(0)
}

/// Ends a suite that cannot boot any machine.
fn without_lab(error: Box<dyn Error>, is_required: bool) -> Result<i32> {
    if is_required {
        return Err(format!("{}=required, and there is no lab: {error}", tools::REQUIRED).into());
    }
    println!("\n*** LAB SKIPPED: NOTHING WAS TESTED UNDER PREEMPT_RT. {error} ***\n");
    Ok(0)
}

type Kernels = Vec<(Flavour, Kernel)>;

/// Returns the kernels that the selected machines boot, and those that are not cached and were not
/// requested by name.
fn kernels(selection: &Selection, interrupt: &Interrupt) -> Result<(Kernels, Vec<Flavour>)> {
    let (mut kernels, mut without) = (Kernels::new(), Vec::new());
    for on in selection.machines() {
        let flavour = on.kernel;
        if without.contains(&flavour) || kernels.iter().any(|(had, _)| *had == flavour) {
            continue;
        }
        if flavour.is_extra() && selection.flavour.is_none() && Kernel::cached(flavour).is_none() {
            without.push(flavour);
        } else {
            let kernel = Kernel::get(flavour, interrupt)?;
            if let Some(userland) = kernel.arch.userland() {
                userland.get(interrupt)?;
            }
            kernels.push((flavour, kernel));
        }
    }
    Ok((kernels, without))
}

/// Runs the cases on a real machine.
fn board(host: &str, selection: &Selection) -> Result<i32> {
    // Cases that need the benchmark also need the lab.
    let cases = |built| cases::all(built, None);
    if selection.lists(cases(None)?.iter().filter(|case| selection.has(case)))? {
        return Ok(0);
    }
    let interrupt = Interrupt::install()?;
    let board = Board::connect(host, &interrupt)?;
    let name = format!("{host}, {}, {}", board.system, counted(board.cpus as usize, "CPU"));
    println!("lab: {name}");
    let built = cargo::build(cross_cargo(board.architecture())?.args(["test", "--workspace", "--no-run"]))?;
    let cases = cases(Some(&built))?;
    let mut verdicts = Verdicts::new()?;
    let mut chosen: Vec<&Case> = Vec::new();
    for case in cases.iter().filter(|case| selection.has(case)) {
        let cpus = case.cpus();
        if let Some(what) = case.lacking {
            verdicts.skip(host, &case.name, &format!("it needs {what}"));
        } else if cpus > board.cpus {
            verdicts.skip(host, &case.name, &format!("it needs {}", counted(cpus as usize, "CPU")));
        } else if let Some(same) = chosen.iter_mut().find(|chosen| chosen.name == case.name) {
            // A case for several machine sizes runs once, in the form for the largest.
            if cpus >= same.cpus() {
                *same = case;
            }
        } else {
            chosen.push(case);
        }
    }
    board.stage(&job(&chosen))?;
    for (number, case) in chosen.iter().enumerate() {
        let begun = Instant::now();
        let limit = Duration::from_secs(u64::from(CASE_LIMIT) + 60);
        let mut outcome = process::capture(&mut board.case(&script_name(number), CASE_LIMIT)?, limit)?;
        interrupt.check()?;
        if let End::Exited(status) = outcome.end {
            outcome.end = shell_end(status);
        }
        let verdict = (case.judge)(&outcome).and_then(|()| case.printed(&outcome));
        verdicts.note(host, &case.name, Some(begun.elapsed()), Some(&outcome), verdict)?;
    }
    verdicts.conclude()?;
    println!("lab: all as expected on {name}");
    Ok(0)
}

struct Suite<'a> {
    kernel: &'a Kernel,
    interrupt: &'a Interrupt,
}

impl Suite<'_> {
    /// Runs `cases` on one machine.
    fn on(&self, on: Setup, cases: &[&Case], verdicts: &mut Verdicts) -> Result {
        let ended = self.boot(on, cases, verdicts)?;
        println!("{:16} booted in {:.1} s", on.name, ended.boot.as_secs_f64());
        for (number, case) in cases.iter().enumerate() {
            let outcome = outcome(&ended.results, number)?;
            let took =
                ended.cases.get(number + 1).zip(ended.cases.get(number)).map(|(end, begin)| *end - *begin);
            let verdict = (case.judge)(&outcome).and_then(|()| case.printed(&outcome));
            verdicts.note(on.name, &case.name, took, Some(&outcome), verdict)?;
        }
        if on.counted {
            self.again(on, cases, ended, verdicts)?;
        }
        Ok(())
    }

    /// Runs `cases` once more, and requires that the results are identical to those of the `first`
    /// run.
    fn again(&self, on: Setup, cases: &[&Case], first: Ended, verdicts: &mut Verdicts) -> Result {
        let mut took = Duration::ZERO;
        let again = || {
            let ended = self.boot(on, cases, verdicts)?;
            took += ended.cases.last().copied().unwrap_or_default();
            Ok(ended)
        };
        let same = |one: &Ended, other: &Ended| Ok(differences(cases, one, other)?.is_empty());
        let (runs, repeated) = repeat(first, again, same)?;
        let verdict = if repeated && runs.len() == 2 {
            Ok(format!("{} and the console, to the byte", counted(cases.len(), "case")))
        } else {
            let differing = differences(cases, &runs[0], &runs[1])?;
            let names = differing.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
            let runs = format!("of {} runs, the first two of which differ in {names}", runs.len());
            if repeated {
                Ok(format!("two {runs}, to the byte"))
            } else {
                for (name, printed) in differing {
                    verdicts.note(on.name, &format!("{name}, again"), None, None, Err(printed.into()))?;
                }
                Err(format!("no two {runs}").into())
            }
        };
        verdicts.note(on.name, "a second run is the same", Some(took), None, verdict)
    }

    fn boot(&self, on: Setup, cases: &[&Case], verdicts: &Verdicts) -> Result<Ended> {
        let machine = Machine {
            cpus: on.cpus,
            memory: MEMORY,
            counted: on.counted,
            other: on.other,
            append: on.append.to_owned(),
            ..Machine::default()
        };
        let mode = if machine.counted { Mode::Late } else { Mode::Share };
        let guest = Guest { machine, kernel: self.kernel, mode, timeout: TIMEOUT, interrupt: self.interrupt };
        let mut unexpected = String::new();
        let mut sink = |_: Stream, bytes: &[u8]| -> Result {
            unexpected += &String::from_utf8_lossy(bytes);
            Ok(())
        };
        let mut job = job(cases);
        if self.kernel.has_build_tree() {
            job.modules = modules::get(self.kernel, self.interrupt)?;
        }
        let ended = guest.run(&job, &mut sink, &|results| verdicts.rescue(on.name, results))?;
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

/// The maximum number of runs until two of them are identical.
///
/// Wake-ups of QEMU itself while the guest executes can shift the subsequent timing, which on a
/// busy host happens in one of six runs that measure latencies. If the results depend on the host's
/// time, no two runs are identical.
const RUNS: usize = 5;

/// Runs `again` until a run is identical to an earlier one; returns all runs, and whether the last
/// one is.
fn repeat<T>(
    first: T,
    mut again: impl FnMut() -> Result<T>,
    same: impl Fn(&T, &T) -> Result<bool>,
) -> Result<(Vec<T>, bool)> {
    let mut runs = vec![first];
    while runs.len() < RUNS {
        let next = again()?;
        let mut repeated = false;
        for earlier in &runs {
            repeated |= same(earlier, &next)?;
        }
        runs.push(next);
        if repeated {
            return Ok((runs, true));
        }
    }
    Ok((runs, false))
}

/// Returns the differences between two runs of `cases`: the name of each case, and both outputs.
fn differences(cases: &[&Case], once: &Ended, again: &Ended) -> Result<Vec<(String, String)>> {
    let mut differing = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let (once, again) = (outcome(&once.results, number)?, outcome(&again.results, number)?);
        if once.end != again.end || once.stdout != again.stdout || once.stderr != again.stderr {
            let printed =
                format!("{}{}\n--- again:\n{}{}", once.stdout, once.stderr, again.stdout, again.stderr);
            differing.push((case.name.clone(), printed));
        }
    }
    let (once, again) = (once.console.counted(), again.console.counted());
    if once != again {
        differing.push(("the console".to_owned(), format!("{once}\n--- again:\n{again}")));
    }
    Ok(differing)
}

/// Returns the job that runs `cases` in turn, and stores the results of each in `<number>.stdout`,
/// `.stderr` and `.status`.
fn job(cases: &[&Case]) -> Job {
    let mut job = Job { command: vec!["sh".to_owned(), "/lab/bin/suite".to_owned()], ..Job::default() };
    // Programs write to memory, because waiting for the host's file would be part of the test.
    let mut suite = "mkdir /tmp/case\n".to_owned();
    for (number, case) in cases.iter().enumerate() {
        let script = script_name(number);
        suite += &format!(
            "echo {} >/dev/console\n\
             cd /tmp/case && timeout -s KILL {CASE_LIMIT} sh /lab/bin/{script} >/tmp/stdout 2>/tmp/stderr\n\
             echo $? >/tmp/status\nfor part in stdout stderr status; do mv /tmp/$part /results/{number}.$part; done\n",
            quoted(&format!("{}{}", console::CASE, case.name)),
        );
        job.scripts.push((script, case.script.clone()));
        for program in &case.programs {
            if !job.programs.contains(program) {
                job.programs.push(program.clone());
            }
        }
    }
    suite += &format!("echo '{}none' >/dev/console\n", console::CASE);
    job.scripts.push(("suite".to_owned(), suite));
    job
}

/// Returns the outcome of the case with this number.
fn outcome(results: &Path, number: usize) -> Result<Outcome> {
    let part = |name: &str| {
        let bytes = fs::read(results.join(format!("{number}.{name}")));
        bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(|_| "it was not run")
    };
    let end = shell_end(part("status")?.trim().parse()?);
    Ok(Outcome { stdout: part("stdout")?, stderr: part("stderr")?, end })
}

/// Converts a shell's `status` to the end of a program.
fn shell_end(status: i32) -> End {
    match status {
        129..160 => End::Signalled(status - 128),
        status => End::Exited(status),
    }
}

/// Returns the name of the script of the case with this number.
fn script_name(number: usize) -> String {
    format!("case-{number}")
}

#[cfg(test)]
mod tests {
    use punctual_process::child::{BoundedCommand, TEST_LIMIT};

    use super::*;
    use crate::trouble::Trouble;
    use xtask_support::scratch::Scratch;

    #[test]
    fn fails_without_required_lab() {
        assert_eq!(without_lab("no QEMU".into(), false).unwrap(), 0);
        let error = without_lab("no QEMU".into(), true).unwrap_err();
        assert!(error.to_string().starts_with("PUNCTUAL_TOOLS=required"), "{error}");
        assert_eq!(Trouble::status(error.as_ref()), 125);
    }

    #[test]
    fn parses_outcome_of_a_case() {
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
    fn demands_two_equal_runs() {
        let of = |runs: [u8; 5]| {
            let mut rest = runs.into_iter().skip(1);
            let again = || Ok(rest.next().expect("there is no further run"));
            let (runs, repeated) = repeat(runs[0], again, |one, other| Ok(one == other)).unwrap();
            (runs.len(), repeated)
        };
        assert_eq!(of([1, 1, 2, 3, 4]), (2, true));
        assert_eq!(of([1, 2, 1, 3, 4]), (3, true));
        assert_eq!(of([2, 1, 1, 3, 4]), (3, true));
        assert_eq!(of([1, 2, 3, 4, 2]), (5, true));
        assert_eq!(of([1, 2, 3, 4, 5]), (5, false));
    }

    #[test]
    fn packs_program_of_several_cases_once() {
        let case = || Case::new("x", &Setup::ALL, "exec x".to_owned(), Some(Path::new("/bin/x")), |_| Ok(()));
        let (one, two) = (case(), case());
        let job = job(&[&one, &two]);
        assert_eq!(job.programs.len(), 1);
        assert_eq!(job.scripts.len(), 3);
    }

    /// The guest's shell interprets the suite's script, including the names of cases.
    #[test]
    fn prints_exact_case_names() {
        let case = Case::new("the kernel's `x` $y", &[], "exit".to_owned(), None, |_| Ok(()));
        let (_, suite) = job(&[&case]).scripts.pop().unwrap();
        let echo = suite.lines().find(|line| line.starts_with("echo")).unwrap().replace("/dev/console", "&1");
        let printed = std::process::Command::new("sh").args(["-c", &echo]).output_within(TEST_LIMIT).unwrap();
        assert_eq!(String::from_utf8_lossy(&printed.stdout), format!("{}{}\n", console::CASE, case.name));
    }
}
