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

/// A machine of the suite: its kernel, its CPUs, and how it counts time.
///
/// Where time is counted in instructions, a host that is busy delays nothing: what comes within a millisecond does so
/// every time, and a second run has to do the same to the byte. Where it is the host's time, CPUs run at once, and anything
/// may be late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setup {
    /// One CPU, counted.
    Counted,
    /// Two CPUs by turns, counted.
    CountedTwo,
    /// Four CPUs by turns, counted.
    CountedFour,
    /// One CPU in the host's time.
    One,
    /// Two CPUs in the host's time.
    Two,
    /// Four CPUs in the host's time.
    Four,
    /// Two CPUs in the host's time, of which boot parameters keep the second free.
    Isolated,
    /// One CPU, counted, with the kernel that has simulated devices and tracers.
    ProbeCounted,
    /// Two CPUs by turns, counted, with that kernel.
    ProbeCountedTwo,
    /// Two CPUs in the host's time with that kernel.
    ProbeTwo,
    /// The same with the kernel that has statistics of its locks.
    LockstatTwo,
    /// Three CPUs in the host's time, for 64-bit ARM, of which one can be given up.
    ArmThree,
    /// The same on [another machine](crate::arch::Arch::other_machine), of whose memory Linux leaves some alone.
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

    /// Whether its time is counted in instructions.
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

    /// Its parameters of the kernel.
    pub(crate) fn append(self) -> &'static str {
        match self {
            Self::Isolated => isolation::PARAMETERS,
            Self::ArmOther => offline::KEPT,
            _ => "",
        }
    }
}

/// Checks the output of a case; `Err` says what is wrong.
type Judge = Box<dyn Fn(&Outcome) -> Result>;

/// Extracts a figure from the output of a case.
type Figure = Box<dyn Fn(&Outcome) -> Result<String>>;

/// A shell script for the guest, with its expectation.
pub(crate) struct Case {
    pub(crate) name: String,
    /// The machines that it runs on.
    on: &'static [Setup],
    /// Those of a quick run.
    quick: &'static [Setup],
    pub(crate) script: String,
    /// The host's programs that it needs.
    pub(crate) programs: Vec<PathBuf>,
    pub(crate) judge: Judge,
    figure: Option<Figure>,
    /// What a machine other than QEMU's lacks for it.
    pub(crate) lacking: Option<&'static str>,
}

impl Case {
    pub(crate) fn new(
        name: &str,
        on: &'static [Setup],
        script: String,
        program: Option<&Path>,
        judge: Judge,
    ) -> Self {
        let programs = program.into_iter().map(Path::to_owned).collect();
        let name = name.to_owned();
        Self { name, on, quick: &[], script, programs, judge, figure: None, lacking: None }
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

    /// The machines that it runs on.
    fn machines(&self, quick: bool) -> &'static [Setup] {
        if quick { self.quick } else { self.on }
    }

    /// How many CPUs it needs at least; `None` if it is not run at all.
    pub(crate) fn cpus(&self, quick: bool) -> Option<u32> {
        self.machines(quick).iter().map(|on| on.cpus()).min()
    }

    pub(crate) fn runs_on(&self, on: Setup, quick: bool) -> bool {
        self.machines(quick).contains(&on)
    }

    /// The figure that it prints, which may be nothing.
    pub(crate) fn said(&self, outcome: &Outcome) -> Result<String> {
        self.figure.as_ref().map_or(Ok(String::new()), |figure| figure(outcome))
    }
}

/// All cases, of the executables in `built` and the benchmark at `bench`; `bless` makes the figures that come out the
/// expected ones. Without a benchmark the cases that take it cannot be run.
pub(crate) fn all(built: &[Artifact], bench: Option<&Path>, bless: bool) -> Result<Vec<Case>> {
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
    // What belongs to quick runs only has no other machines.
    let of_probe =
        |case: &Case| !case.on.is_empty() && case.on.iter().all(|on| on.flavour() == Flavour::RtProbe);
    let mark = |case: Case| if of_probe(&case) { case.of_probe() } else { case };
    Ok(cases.into_iter().map(mark).collect())
}

/// The cases for machines with another processor.
pub(crate) fn foreign() -> Vec<Case> {
    let mut cases = vec![kernel()];
    cases.extend(offline::cases());
    cases
}

/// Where the program that counts is, once it is built.
pub(crate) fn counts() -> PathBuf {
    cargo::target_dir().join("release").join(crate::figures::PROGRAM)
}

/// The directory of the package of programs that are for the lab only.
const PROGRAMS: &str = "programs";

fn find<'a>(built: &'a [Artifact], purpose: Purpose, package: &str, target: &str) -> Result<&'a Path> {
    let wanted = |artifact: &&Artifact| {
        artifact.purpose == purpose && artifact.package == package && artifact.target == target
    };
    let found = built.iter().find(wanted).ok_or_else(|| format!("cargo built no {target} of {package}"))?;
    Ok(&found.path)
}

/// The command. The benchmark is the same program, built for release, and a guest has room for one of a name.
fn punctual<'a>(built: &'a [Artifact], bench: Option<&'a Path>) -> Result<&'a Path> {
    bench.map_or_else(|| find(built, Purpose::Other, "punctual-cli", "punctual"), Ok)
}

/// Has a guest's shell mount control groups of version 2.
const CGROUPS: &str = "mkdir -p /sys/fs/cgroup
        mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null";

/// The lab itself: without this, no other case means what it says.
fn kernel() -> Case {
    let script = "grep -o PREEMPT_RT /proc/version; cat /sys/kernel/realtime".to_owned();
    let judge = |outcome: &Outcome| {
        // A plain mainline kernel has no such file.
        demand(
            outcome,
            outcome.stdout == "PREEMPT_RT\n1\n" || outcome.stdout == "PREEMPT_RT\n",
            "another kernel runs",
        )
    };
    Case::new("the kernel is PREEMPT_RT", &Setup::ALL, script, None, Box::new(judge)).quick(&[
        Setup::Counted,
        Setup::CountedTwo,
        Setup::Two,
        Setup::Four,
    ])
}

/// `Err` with what was printed, unless `holds`.
fn demand(outcome: &Outcome, holds: bool, otherwise: &str) -> Result {
    if holds {
        return Ok(());
    }
    Err(format!("{otherwise} ({})\n{}{}", outcome.end, outcome.stdout, outcome.stderr).into())
}

/// What a program did that has ended well.
#[cfg(test)]
fn outcome(stdout: &str, stderr: &str) -> Outcome {
    Outcome { stdout: stdout.to_owned(), stderr: stderr.to_owned(), end: End::Exited(0) }
}
