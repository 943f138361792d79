//! The cost of operations in counted instructions, compared with `lab/figures.txt`; see
//! [`crate::figures`].

use std::fs;
use std::path::{Path, PathBuf};

use xtask_support::process::{End, Outcome};

use super::{Case, Setup, demand};
use crate::arch::Arch;
use crate::figures::{self, Figures, Part};
use crate::kernels::debs::RT_TESTS;

/// Returns the cases of this file; `program` is the measuring program, and `bless` makes its
/// results the expected figures.
pub(super) fn cases(program: &Path, bless: bool) -> Vec<Case> {
    vec![counted(program, figures::file(Arch::Amd64), bless)]
}

fn counted(program: &Path, file: PathBuf, bless: bool) -> Case {
    let judge = move |outcome: &Outcome| {
        demand(outcome, outcome.end == End::Exited(0), "the measurement failed")?;
        let found = Figures::measured(&outcome.stdout)?;
        if bless {
            return Ok(fs::write(&file, found.to_string())?);
        }
        Figures::read(&file)?.require(&found, true)
    };
    let figure = |outcome: &Outcome| {
        let found = Figures::measured(&outcome.stdout)?;
        let mean = |subject| figures::mean(&outcome.stdout, &format!("latency/instant/{subject}/idle"));
        let (ours, thread, cyclictest) = (mean("punctual")?, mean("posix")?, mean("cyclictest")?);
        Ok(format!(
            "{} rows; an instant: {:.2} × clock_nanosleep, {:.2} × cyclictest, on average",
            found.len(),
            ours / thread,
            ours / cyclictest
        ))
    };
    let script = figures::script(program, RT_TESTS, &Part::ALL);
    Case::new("figures in instructions", &[Setup::Counted], script, Some(program), judge)
        .with(&RT_TESTS.program("cyclictest"))
        .with(&RT_TESTS.program("hackbench"))
        .saying(figure)
        .lacking("time that is counted in instructions")
}
