//! The cases of the lab's suite, with their expectations: a file for each subject.

pub(crate) mod devices;
mod examples;
mod figures;
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
use xtask_support::cargo::{self, Artifact, Purpose};
#[cfg(test)]
use xtask_support::process::End;
use xtask_support::process::Outcome;

use crate::kernels::package::Flavour;

/// A machine of the suite: its kernel, its CPUs, and its time base.
///
/// If time is counted in instructions, a busy host delays nothing: timing is reproducible, and a
/// second run must be identical. In the host's time CPUs run in parallel, and anything may be late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setup {
    /// One CPU, counted.
    Counted,
    /// Two CPUs that take turns, counted.
    CountedTwo,
    /// Four CPUs that take turns, counted.
    CountedFour,
    /// One CPU in the host's time.
    One,
    /// Two CPUs in the host's time.
    Two,
    /// Four CPUs in the host's time.
    Four,
    /// Two CPUs in the host's time, of which boot parameters isolate the second.
    Isolated,
    /// One CPU, counted, with the kernel with simulated devices and tracers.
    ProbeCounted,
    /// Two CPUs that take turns, counted, with that kernel.
    ProbeCountedTwo,
    /// Two CPUs in the host's time with that kernel.
    ProbeTwo,
    /// The same with the kernel with lock statistics.
    LockstatTwo,
    /// Three CPUs in the host's time, for 64-bit ARM, of which one can be given up.
    ArmThree,
    /// The same on [another machine](crate::arch::Arch::other_machine), with memory that Linux does
    /// not use.
    ArmOther,
}

impl Setup {
    pub(crate) const ALL: [Self; 13] = [
        Self::Counted,
        Self::CountedTwo,
        Self::CountedFour,
        Self::One,
        Self::Two,
        Self::Four,
        Self::Isolated,
        Self::ProbeCounted,
        Self::ProbeCountedTwo,
        Self::ProbeTwo,
        Self::LockstatTwo,
        Self::ArmThree,
        Self::ArmOther,
    ];

    pub(crate) fn flavour(self) -> Flavour {
        match self {
            Self::ProbeCounted | Self::ProbeCountedTwo | Self::ProbeTwo => Flavour::RtProbe,
            Self::LockstatTwo => Flavour::RtLockstat,
            Self::ArmThree | Self::ArmOther => Flavour::RtArm64,
            _ => Flavour::Rt,
        }
    }

    /// Returns `true` if its time is counted in instructions.
    pub(crate) fn counted(self) -> bool {
        matches!(
            self,
            Self::Counted | Self::CountedTwo | Self::CountedFour | Self::ProbeCounted | Self::ProbeCountedTwo
        )
    }

    pub(crate) fn cpus(self) -> u32 {
        match self {
            Self::Counted | Self::One | Self::ProbeCounted => 1,
            Self::CountedTwo
            | Self::Two
            | Self::Isolated
            | Self::ProbeCountedTwo
            | Self::ProbeTwo
            | Self::LockstatTwo => 2,
            Self::ArmThree | Self::ArmOther => 3,
            Self::CountedFour | Self::Four => 4,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Counted => "1 CPU, counted",
            Self::CountedTwo => "2 CPUs, counted",
            Self::CountedFour => "4 CPUs, counted",
            Self::One => "1 CPU",
            Self::Two => "2 CPUs",
            Self::Four => "4 CPUs",
            Self::Isolated => "2 CPUs, isolated",
            Self::ProbeCounted => "probe, counted",
            Self::ProbeCountedTwo => "probe, 2 counted",
            Self::ProbeTwo => "probe, 2 CPUs",
            Self::LockstatTwo => "lockstat, 2 CPUs",
            Self::ArmThree => "arm64, 3 CPUs",
            Self::ArmOther => "arm64, GICv2, SMC",
        }
    }

    /// Returns its kernel parameters.
    pub(crate) fn append(self) -> &'static str {
        match self {
            Self::Isolated => isolation::PARAMETERS,
            Self::ArmOther => offline::KEPT,
            _ => "",
        }
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
    /// The machines of a quick run.
    quick: &'static [Setup],
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
        Self { name, on, quick: &[], script, programs, judge: Box::new(judge), figure: None, lacking: None }
    }

    /// Adds a program.
    fn with(mut self, program: &Path) -> Self {
        self.programs.push(program.to_owned());
        self
    }

    /// Adds it to quick runs, on these machines.
    fn quick(self, on: &'static [Setup]) -> Self {
        Self { quick: on, ..self }
    }

    /// Adds a figure.
    fn saying(self, figure: impl Fn(&Outcome) -> Result<String> + 'static) -> Self {
        Self { figure: Some(Box::new(figure)), ..self }
    }

    /// Requires the kernel with simulated devices and tracers.
    fn of_probe(self) -> Self {
        let quick: &'static [Setup] =
            if self.on.contains(&Setup::ProbeCounted) { &[Setup::ProbeCounted] } else { &[] };
        self.quick(quick).lacking("the kernel `rt-probe`")
    }

    /// Restricts it to the lab.
    fn lacking(self, what: &'static str) -> Self {
        Self { lacking: Some(what), ..self }
    }

    /// Returns the machines on which it runs.
    fn machines(&self, quick: bool) -> &'static [Setup] {
        if quick { self.quick } else { self.on }
    }

    /// Returns the minimum number of CPUs; `None` if it is not run.
    pub(crate) fn cpus(&self, quick: bool) -> Option<u32> {
        self.machines(quick).iter().map(|on| on.cpus()).min()
    }

    pub(crate) fn runs_on(&self, on: Setup, quick: bool) -> bool {
        self.machines(quick).contains(&on)
    }

    /// Returns the figure to print, which may be empty.
    pub(crate) fn said(&self, outcome: &Outcome) -> Result<String> {
        self.figure.as_ref().map_or(Ok(String::new()), |figure| figure(outcome))
    }
}

/// Returns all cases, with the executables in `built` and the benchmark at `bench`; `bless` makes
/// measured figures the expected ones. Without a benchmark, cases that need it cannot run.
pub(crate) fn all(built: Built<'_>, bench: Option<&Path>, bless: bool) -> Result<Vec<Case>> {
    let measures = bench.unwrap_or(Path::new("punctual"));
    let mut cases = vec![kernel()];
    cases.extend(examples::cases(built)?);
    cases.extend(locks::cases(built)?);
    cases.extend(load::cases(built)?);
    cases.extend(isolation::cases(built, bench)?);
    cases.extend(interruptions::cases(built, bench)?);
    cases.extend(supervision::cases(built, bench)?);
    cases.extend(figures::cases(&counts(), bless));
    cases.extend(peers::cases(measures));
    cases.extend(devices::cases(built)?);
    cases.extend(responders::cases(built)?);
    cases.extend(user_drivers::cases(built)?);
    cases.extend(tracing::cases(built, bench)?);
    cases.extend(offline::cases());
    // A case for quick runs only has no other machines.
    let of_probe =
        |case: &Case| !case.on.is_empty() && case.on.iter().all(|on| on.flavour() == Flavour::RtProbe);
    let mark = |case: Case| if of_probe(&case) { case.of_probe() } else { case };
    Ok(cases.into_iter().map(mark).collect())
}

/// Returns the cases for machines with another processor.
pub(crate) fn foreign() -> Vec<Case> {
    let mut cases = vec![kernel()];
    cases.extend(offline::cases());
    cases
}

/// Returns the path of the counting program after the build.
pub(crate) fn counts() -> PathBuf {
    cargo::target_dir().join("release").join(crate::figures::PROGRAM)
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
        demand(
            outcome,
            outcome.stdout == "PREEMPT_RT\n1\n" || outcome.stdout == "PREEMPT_RT\n",
            "another kernel runs",
        )
    };
    Case::new("the kernel is PREEMPT_RT", &Setup::ALL, script, None, judge).quick(&[
        Setup::Counted,
        Setup::CountedTwo,
        Setup::Two,
        Setup::Four,
    ])
}

/// Returns `Err` with the output, unless `holds`.
fn demand(outcome: &Outcome, holds: bool, otherwise: &str) -> Result {
    if holds {
        return Ok(());
    }
    Err(format!("{otherwise} ({})\n{}{}", outcome.end, outcome.stdout, outcome.stderr).into())
}

/// Returns the outcome of a successful program.
#[cfg(test)]
fn outcome(stdout: &str, stderr: &str) -> Outcome {
    Outcome { stdout: stdout.to_owned(), stderr: stderr.to_owned(), end: End::Exited(0) }
}
