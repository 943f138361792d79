//! A lock makes nobody wait for longer than it is held.

use std::path::Path;

use super::{Case, On, demand, find};
use crate::Result;
use crate::cargo::{Artifact, Purpose};
use crate::lab::stage::in_guest;
use crate::process::{End, Outcome};

/// The cases of this file.
pub(super) fn cases(built: &[Artifact]) -> Result<Vec<Case>> {
    Ok(vec![inversion(find(built, Purpose::Test, "punctual-sync", "pcp_fifo")?)])
}

/// Who waits for a lower priority waits no longer than it holds the lock, whatever is in between.
fn inversion(program: &Path) -> Case {
    let script = format!("exec {} --test-threads 1 --nocapture", in_guest(program));
    let judge = |outcome: &Outcome| {
        demand(outcome, outcome.end == End::Exited(0), "a test failed")?;
        demand(outcome, !outcome.stderr.contains("SKIPPED"), "a test was skipped")?;
        demand(
            outcome,
            outcome.stdout.contains("priority_inversion_is_bounded ... ok"),
            "the test did not run",
        )
    };
    Case::new(
        "priority inversion is bounded",
        &[On::Counted, On::Two],
        script,
        Some(program),
        Box::new(judge),
    )
}

#[cfg(test)]
mod tests {
    use super::super::outcome;
    use super::*;

    #[test]
    fn what_was_skipped_is_no_success() {
        let passed = "test priority_inversion_is_bounded ... ok\n";
        let judge = inversion(Path::new("/x")).judge;
        judge(&outcome(passed, "")).unwrap();
        assert!(judge(&outcome(passed, "SKIPPED priority_inversion_is_bounded: no\n")).is_err());
        assert!(judge(&outcome("", "")).is_err());
    }
}
