//! The cases of the lab's suite, with their expectations: a file for each subject.

pub(crate) mod devices;
mod examples;
mod interruptions;
mod isolation;
mod load;
mod locks;
pub(crate) mod offline;
mod peers;
mod responders;
mod supervision;
mod tracing;
mod user_drivers;

use std::path::{Path, PathBuf};

use xtask_support::Result;
use xtask_support::cargo::{Artifact, Purpose};
#[cfg(test)]
use xtask_support::process::End;
use xtask_support::process::Outcome;

use crate::kernels::package::Flavour;

/// A machine of the suite: its kernel, its CPUs, and its time base.
///
/// If time is counted in instructions, a busy host delays nothing: timing is reproducible, and a
/// second run must be identical. Several CPUs then take turns. In the host's time CPUs run in
/// parallel, and anything may be late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setup {
    pub(crate) name: &'static str,
    pub(crate) kernel: Flavour,
    pub(crate) cpus: u32,
    /// Whether its time is counted in instructions.
    pub(crate) counted: bool,
    /// Kernel parameters.
    pub(crate) append: &'static str,
    /// Whether it is [the other machine](crate::arch::Arch::other_machine) of its architecture.
    pub(crate) other: bool,
}

impl Setup {
    pub(crate) const COUNTED: Self = Self::counted("1 CPU, counted", Flavour::Rt, 1);
    pub(crate) const COUNTED_TWO: Self = Self::counted("2 CPUs, counted", Flavour::Rt, 2);
    pub(crate) const COUNTED_FOUR: Self = Self::counted("4 CPUs, counted", Flavour::Rt, 4);
    pub(crate) const ONE: Self = Self::new("1 CPU", Flavour::Rt, 1);
    pub(crate) const TWO: Self = Self::new("2 CPUs", Flavour::Rt, 2);
    pub(crate) const FOUR: Self = Self::new("4 CPUs", Flavour::Rt, 4);
    /// Boot parameters isolate the second CPU.
    pub(crate) const ISOLATED: Self =
        Self { append: isolation::PARAMETERS, ..Self::new("2 CPUs, isolated", Flavour::Rt, 2) };
    /// With simulated devices and tracers.
    pub(crate) const PROBE_COUNTED: Self = Self::counted("probe, counted", Flavour::RtProbe, 1);
    pub(crate) const PROBE_COUNTED_TWO: Self = Self::counted("probe, 2 counted", Flavour::RtProbe, 2);
    pub(crate) const PROBE_TWO: Self = Self::new("probe, 2 CPUs", Flavour::RtProbe, 2);
    pub(crate) const LOCKSTAT_TWO: Self = Self::new("lockstat, 2 CPUs", Flavour::RtLockstat, 2);
    /// One of the CPUs can be given up.
    pub(crate) const ARM_THREE: Self = Self::new("arm64, 3 CPUs", Flavour::RtArm64, 3);
    /// With memory that Linux does not use.
    pub(crate) const ARM_OTHER: Self =
        Self { append: offline::KEPT, other: true, ..Self::new("arm64, GICv2, SMC", Flavour::RtArm64, 3) };

    pub(crate) const ALL: [Self; 13] = [
        Self::COUNTED,
        Self::COUNTED_TWO,
        Self::COUNTED_FOUR,
        Self::ONE,
        Self::TWO,
        Self::FOUR,
        Self::ISOLATED,
        Self::PROBE_COUNTED,
        Self::PROBE_COUNTED_TWO,
        Self::PROBE_TWO,
        Self::LOCKSTAT_TWO,
        Self::ARM_THREE,
        Self::ARM_OTHER,
    ];

    const fn new(name: &'static str, kernel: Flavour, cpus: u32) -> Self {
        Self { name, kernel, cpus, counted: false, append: "", other: false }
    }

    const fn counted(name: &'static str, kernel: Flavour, cpus: u32) -> Self {
        Self { counted: true, ..Self::new(name, kernel, cpus) }
    }
}

/// Checks the output of a case; `Err` describes the failure.
type Judge = Box<dyn Fn(&Outcome) -> Result>;

/// Extracts a figure from the output of a case.
type Figure = Box<dyn Fn(&Outcome) -> Result<String>>;

/// A shell script for the guest, with its expectation.
pub(crate) struct Case {
    pub(crate) name: String,
    /// The machines on which it runs.
    on: &'static [Setup],
    pub(crate) script: String,
    /// The host programs that it needs.
    pub(crate) programs: Vec<PathBuf>,
    pub(crate) judge: Judge,
    figure: Option<Figure>,
    /// The feature that a machine other than QEMU's lacks for it.
    pub(crate) lacking: Option<&'static str>,
}

impl Case {
    pub(crate) fn new(
        name: &str,
        on: &'static [Setup],
        script: String,
        program: Option<&Path>,
        judge: impl Fn(&Outcome) -> Result + 'static,
    ) -> Self {
        let programs = program.into_iter().map(Path::to_owned).collect();
        let name = name.to_owned();
        Self { name, on, script, programs, judge: Box::new(judge), figure: None, lacking: None }
    }

    /// Adds a program.
    fn with(mut self, program: &Path) -> Self {
        self.programs.push(program.to_owned());
        self
    }

    /// Adds a figure.
    fn saying(self, figure: impl Fn(&Outcome) -> Result<String> + 'static) -> Self {
        Self { figure: Some(Box::new(figure)), ..self }
    }

    /// Restricts it to the lab.
    fn lacking(self, what: &'static str) -> Self {
        Self { lacking: Some(what), ..self }
    }

    /// Returns the minimum number of CPUs.
    pub(crate) fn cpus(&self) -> u32 {
        self.on.iter().map(|on| on.cpus).min().unwrap_or_default()
    }

    pub(crate) fn runs_on(&self, on: Setup) -> bool {
        self.on.contains(&on)
    }

    /// Returns the figure to print, which may be empty.
    pub(crate) fn printed(&self, outcome: &Outcome) -> Result<String> {
        self.figure.as_ref().map_or(Ok(String::new()), |figure| figure(outcome))
    }
}

/// Returns all cases, with the executables in `built` and the benchmark at `bench`. Without a
/// benchmark, cases that need it cannot run.
pub(crate) fn all(built: Built<'_>, bench: Option<&Path>) -> Result<Vec<Case>> {
    let measures = bench.unwrap_or(Path::new("punctual"));
    let mut cases = vec![kernel()];
    cases.extend(examples::cases(built)?);
    cases.extend(locks::cases(built)?);
    cases.extend(load::cases(built)?);
    cases.extend(isolation::cases(built, bench)?);
    cases.extend(interruptions::cases(built, bench)?);
    cases.extend(supervision::cases(built, bench)?);
    cases.extend(peers::cases(measures));
    cases.extend(devices::cases(built)?);
    cases.extend(responders::cases(built)?);
    cases.extend(user_drivers::cases(built)?);
    cases.extend(tracing::cases(built, bench)?);
    cases.extend(offline::cases());
    for case in &mut cases {
        if case.on.iter().all(|on| on.kernel == Flavour::RtProbe) {
            case.lacking = Some("the kernel `rt-probe`");
        }
    }
    Ok(cases)
}

/// Returns the cases for machines with another processor.
pub(crate) fn foreign() -> Vec<Case> {
    let mut cases = vec![kernel()];
    cases.extend(offline::cases());
    cases
}

/// The directory of the package of programs for the lab.
const PROGRAMS: &str = "programs";

/// The executables that cargo has built, or `None` before the build, when only the names of the
/// cases are needed.
pub(crate) type Built<'a> = Option<&'a [Artifact]>;

fn find<'a>(built: Built<'a>, purpose: Purpose, package: &str, target: &str) -> Result<&'a Path> {
    let Some(built) = built else { return Ok(Path::new("not-built")) };
    let wanted = |artifact: &&Artifact| {
        artifact.purpose == purpose && artifact.package == package && artifact.target == target
    };
    let found = built.iter().find(wanted).ok_or_else(|| format!("cargo built no {target} of {package}"))?;
    Ok(&found.path)
}

/// Returns the command's path. The benchmark is a release build of the same program, and a guest
/// can have only one program with a name.
fn punctual<'a>(built: Built<'a>, bench: Option<&'a Path>) -> Result<&'a Path> {
    bench.map_or_else(|| find(built, Purpose::Other, "punctual-cli", "punctual"), Ok)
}

/// Mounts control groups of version 2 in a guest's shell.
const CGROUPS: &str = "mkdir -p /sys/fs/cgroup
        mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null";

/// The lab itself: without this, the other cases are meaningless.
fn kernel() -> Case {
    let script = "grep -o PREEMPT_RT /proc/version; cat /sys/kernel/realtime".to_owned();
    let judge = |outcome: &Outcome| {
        // A plain mainline kernel does not have this file.
        demand(outcome.stdout == "PREEMPT_RT\n1\n" || outcome.stdout == "PREEMPT_RT\n", "another kernel runs")
    };
    Case::new("the kernel is PREEMPT_RT", &Setup::ALL, script, None, judge)
}

/// Returns `Err` unless `holds`. The report of a failure includes the output.
fn demand(holds: bool, otherwise: &str) -> Result {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}

/// Returns the outcome of a successful program.
#[cfg(test)]
fn outcome(stdout: &str, stderr: &str) -> Outcome {
    Outcome { stdout: stdout.to_owned(), stderr: stderr.to_owned(), end: End::Exited(0) }
}

/// Requires that a judge accepts an output, and rejects it after each of these replacements.
#[cfg(test)]
#[track_caller]
fn rejects(judge: impl Fn(&Outcome) -> Result, good: &str, changes: &[(&str, &str)]) {
    judge(&outcome(good, "")).unwrap();
    for (text, other) in changes {
        assert!(good.contains(text), "{text}");
        assert!(judge(&outcome(&good.replacen(text, other, 1), "")).is_err(), "{text}: {other}");
    }
}

/// Requires that a judge accepts an output, and rejects it without any of its lines.
#[cfg(test)]
#[track_caller]
fn requires_each_line(judge: impl Fn(&Outcome) -> Result, good: &str) {
    let lines: Vec<String> = good.lines().map(|line| format!("{line}\n")).collect();
    rejects(judge, good, &lines.iter().map(|line| (line.as_str(), "")).collect::<Vec<_>>());
}
