//! Debian's rt-tests compared with our benchmark: the load of hackbench, the lateness of
//! cyclictest, the inversions of pi_stress.

use std::path::Path;

use serde_json::Value;
use xtask_support::Result;
use xtask_support::process::{End, Outcome};

use super::{Case, Setup, demand};
use crate::driver::stage::in_guest;
use crate::figures::mean;
use crate::kernels::debs::RT_TESTS;

/// The feature that a machine other than a guest lacks.
const HAS_RT_TESTS: &str = "the lab's copy of rt-tests";

/// The cases of this file.
pub(super) fn cases(bench: &Path) -> Vec<Case> {
    vec![inversions(), rules(bench), instants(bench)]
}

/// The kernel's side of priority inheritance, which our code depends on.
fn inversions() -> Case {
    let program = RT_TESTS.program("pi_stress");
    let script = format!("exec {} --duration 5 --groups 2 --quiet", in_guest(&program));
    let judge = |outcome: &Outcome| {
        demand(outcome.end == End::Exited(0), "pi_stress has found a deadlock, or failed")?;
        demand(inverted(outcome).is_some_and(|count| count > 0), "nothing was inverted")
    };
    let figure = |outcome: &Outcome| Ok(format!("{} inversions", inverted(outcome).unwrap_or_default()));
    Case::new("pi_stress", &[Setup::TWO, Setup::FOUR], script, Some(&program), judge)
        .saying(figure)
        .lacking(HAS_RT_TESTS)
}

fn inverted(outcome: &Outcome) -> Option<u64> {
    let number = |line: &str| line.strip_prefix("Total inversion performed:")?.trim().parse().ok();
    outcome.stdout.lines().find_map(number)
}

/// The rules of the benchmark hold while hackbench keeps every CPU busy.
fn rules(bench: &Path) -> Case {
    let (bench_in_guest, hackbench) = (in_guest(bench), RT_TESTS.program("hackbench"));
    // In a separate session, so that its children end with it.
    let script = format!(
        "setsid {} --pipe -g 1 -f 4 -l 100000000 >/dev/null 2>&1 &
        load=$!
        {bench_in_guest} bench behavior --quick --json=rules.json >&2
        status=$?
        kill -9 -$load && echo loaded >&2
        cat rules.json
        exit $status",
        in_guest(&hackbench)
    );
    let judge = |outcome: &Outcome| {
        demand(outcome.end == End::Exited(0), "a rule was not kept")?;
        demand(outcome.stderr.ends_with("loaded\n"), "hackbench did not run")?;
        let [passed, failed, without] = verdicts(&outcome.stdout)?;
        demand(passed > 0 && failed == 0 && without == 0, "not every rule was tried and kept")
    };
    let figure = |outcome: &Outcome| Ok(format!("{} rules", verdicts(&outcome.stdout)?[0]));
    Case::new("rules hold under hackbench", &[Setup::TWO, Setup::FOUR], script, Some(bench), judge)
        .with(&hackbench)
        .saying(figure)
        .lacking(HAS_RT_TESTS)
}

/// Returns the numbers of checks in the JSON of a run that passed, failed, and could not be judged.
fn verdicts(text: &str) -> Result<[usize; 3]> {
    let run: Value = serde_json::from_str(text)?;
    let suites = run["suites"].as_array().ok_or("the run has no suites")?;
    let count = |verdict: &str| {
        let checks = suites.iter().flat_map(|suite| suite["checks"].as_array().into_iter().flatten());
        checks.filter(|check| check["verdict"] == verdict).count()
    };
    Ok([count("passed"), count("failed"), count("not-meaningful")])
}

/// A job at an instant, a thread and cyclictest in turns, on an idle machine and under the
/// benchmark's own load. hackbench has so many threads that in emulation cyclictest's ordinary
/// thread rarely runs.
fn instants(bench: &Path) -> Case {
    let script = format!(
        "{} bench latency --quick --only 'at an instant' --json=instants.json >&2 && cat instants.json",
        in_guest(bench)
    );
    let ratios = |outcome: &Outcome| -> Result<Vec<String>> {
        let of = |condition: &str| {
            let mean = |subject| mean(&outcome.stdout, &format!("latency/instant/{subject}/{condition}"));
            Ok(format!("{:.2} × {condition}", mean("punctual")? / mean("cyclictest")?))
        };
        ["idle", "load"].into_iter().map(of).collect()
    };
    let judge = move |outcome: &Outcome| {
        demand(outcome.end == End::Exited(0), "the measurement failed")?;
        // No bound: the host may take time in one run and not in another.
        ratios(outcome).map(|_| ())
    };
    let figure = move |outcome: &Outcome| {
        Ok(format!("mean lateness by that of cyclictest: {}", ratios(outcome)?.join(", ")))
    };
    Case::new("an instant compared with cyclictest", &[Setup::TWO], script, Some(bench), judge)
        .with(&RT_TESTS.program("cyclictest"))
        .saying(figure)
        .lacking(HAS_RT_TESTS)
}

#[cfg(test)]
mod tests {
    use super::super::{outcome, rejects};
    use super::*;

    #[test]
    fn rejects_pi_stress_without_inversions() {
        let good = "Total inversion performed: 19571\nTest Duration: x\n";
        rejects(inversions().judge, good, &[("19571", "0"), (good, "")]);
        let failed = Outcome { end: End::Exited(1), ..outcome(good, "") };
        assert!((inversions().judge)(&failed).is_err());
    }

    #[test]
    fn counts_unjudged_rule_as_broken() {
        let judge = rules(Path::new("/x")).judge;
        let run = r#"{"suites": [{"checks": [{"verdict": "passed"}, {"verdict": "observed"}]}]}"#;
        let loaded = |changed: &Outcome| judge(&outcome(&changed.stdout, "loaded\n"));
        rejects(
            loaded,
            run,
            &[("observed", "failed"), ("observed", "not-meaningful"), ("\"passed\"", "\"observed\"")],
        );
        assert!(judge(&outcome(run, "")).is_err());
    }

    #[test]
    fn needs_both_values_for_ratio() {
        let case = instants(Path::new("/x"));
        let row = |id: &str, mean: f64| {
            let id = format!("latency/instant/{id}");
            serde_json::json!({ "id": id, "figures": { "mean_ns": mean }, "why": [] })
        };
        let rows = [
            ("punctual/idle", 30.0),
            ("cyclictest/idle", 20.0),
            ("punctual/load", 10.0),
            ("cyclictest/load", 20.0),
        ];
        let rows = rows.map(|(id, mean)| row(id, mean));
        let run =
            serde_json::json!({ "machine": { "kernel": "6.12" }, "suites": [{ "rows": rows }] }).to_string();
        rejects(&case.judge, &run, &[("cyclictest/load", "other/load")]);
        assert!(case.printed(&outcome(&run, "")).unwrap().ends_with("1.50 × idle, 0.50 × load"));
    }
}
