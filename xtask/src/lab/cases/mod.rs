//! What the suite of the lab runs, and what each case is held to: a file for each subject.

mod devices;
mod examples;
mod load;
mod locks;

use std::path::{Path, PathBuf};

use crate::Result;
use crate::cargo::{Artifact, Purpose};
use crate::lab::package::Flavour;
#[cfg(test)]
use crate::process::End;
use crate::process::Outcome;

/// A machine of the suite.
///
/// Where time is counted in instructions, a host that is busy delays nothing: what comes within a millisecond does so
/// every time, and a second run has to do the same to the byte. Where it is the host's time, CPUs run at once, and anything
/// may be late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// One CPU, counted.
    Counted,
    /// Two CPUs by turns, counted.
    CountedTwo,
    /// One CPU in the host's time.
    One,
    /// Two CPUs in the host's time.
    Two,
    /// One CPU, counted, with the kernel that has simulated devices and tracers.
    ProbeCounted,
    /// Two CPUs in the host's time with that kernel.
    ProbeTwo,
}

impl On {
    pub(crate) const ALL: [Self; 6] =
        [Self::Counted, Self::CountedTwo, Self::One, Self::Two, Self::ProbeCounted, Self::ProbeTwo];

    pub(crate) fn flavour(self) -> Flavour {
        match self {
            Self::Counted | Self::CountedTwo | Self::One | Self::Two => Flavour::Rt,
            Self::ProbeCounted | Self::ProbeTwo => Flavour::RtProbe,
        }
    }

    /// Whether its time is counted in instructions.
    pub(crate) fn counted(self) -> bool {
        matches!(self, Self::Counted | Self::CountedTwo | Self::ProbeCounted)
    }

    pub(crate) fn cpus(self) -> u32 {
        match self {
            Self::Counted | Self::One | Self::ProbeCounted => 1,
            Self::CountedTwo | Self::Two | Self::ProbeTwo => 2,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Counted => "1 CPU, counted",
            Self::CountedTwo => "2 CPUs, counted",
            Self::One => "1 CPU",
            Self::Two => "2 CPUs",
            Self::ProbeCounted => "probe, counted",
            Self::ProbeTwo => "probe, 2 CPUs",
        }
    }
}

/// Finds out whether what a case did is right; `Err` says what is wrong.
type Judge = Box<dyn Fn(&Outcome) -> Result>;

/// A shell script to run in the guest, and what is expected of it.
pub(crate) struct Case {
    pub(crate) name: String,
    /// The machines that it runs on.
    pub(crate) on: &'static [On],
    pub(crate) script: String,
    /// The programs of the host that it takes.
    pub(crate) programs: Vec<PathBuf>,
    pub(crate) judge: Judge,
}

impl Case {
    fn new(name: &str, on: &'static [On], script: String, program: Option<&Path>, judge: Judge) -> Self {
        Self {
            name: name.to_owned(),
            on,
            script,
            programs: program.map(Path::to_owned).into_iter().collect(),
            judge,
        }
    }
}

/// All cases, of the executables in `built`.
pub(crate) fn all(built: &[Artifact]) -> Result<Vec<Case>> {
    let mut cases = vec![kernel()];
    cases.extend(examples::cases(built)?);
    cases.extend(locks::cases(built)?);
    cases.extend(load::cases(built)?);
    cases.extend(devices::cases(built)?);
    Ok(cases)
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
    Case::new("the kernel is PREEMPT_RT", &On::ALL, script, None, Box::new(judge))
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
