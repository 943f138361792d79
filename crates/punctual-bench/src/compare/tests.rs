use super::*;
use crate::sample::{row, run};

fn compared(old_ns: u64, new_ns: u64) -> RowChange {
    let comparison =
        Comparison::new(&run(vec![row("a", "Punctual", old_ns)]), &run(vec![row("a", "Punctual", new_ns)]));
    comparison.rows[0].clone()
}

#[test]
fn reports_clear_shifts_but_not_small_ones() {
    let slower = compared(1000, 2000);
    assert_eq!(slower.change, Change::Slower);
    assert!((slower.p50_ratio.unwrap() - 2.0).abs() < 0.01, "{slower:?}");
    assert_eq!(compared(2000, 1000).change, Change::Faster);
    // The samples of each spread over a tenth, so these overlap.
    assert_eq!(compared(1000, 1040).change, Change::Same);
}

#[test]
fn slower_machine_is_no_regression() {
    let beside =
        |ours, peer| run(vec![row("a/x/punctual", "Punctual", ours), row("a/x/posix", "POSIX", peer)]);
    let ours = |old: &Run, new: &Run| Comparison::new(old, new).rows[0].change;
    // All of the growth is explained by the peer and by the locked instruction.
    assert_eq!(ours(&beside(1000, 1000), &beside(2000, 2000)), Change::Same);
    let mut slow = run(vec![row("a/x/punctual", "Punctual", 2000)]);
    slow.machine.locked_ns = slow.machine.locked_ns.map(|ns| ns * 2.0);
    assert_eq!(ours(&run(vec![row("a/x/punctual", "Punctual", 1000)]), &slow), Change::Same);
    // Only our row changed.
    assert_eq!(ours(&beside(1000, 1000), &beside(2000, 1000)), Change::Slower);
}

#[test]
fn accounts_for_noise_of_both_runs() {
    let beside = |other| {
        move |ours| run(vec![row("a/x/punctual", "Punctual", ours), row("a/y/posix", "POSIX", other)])
    };
    let ours = |old: Run, new: Run| Comparison::new(&old, &new).rows[0].change;
    assert_eq!(ours(beside(1000)(1000), beside(1000)(1300)), Change::Slower);
    // A row with unchanged code has changed by as much.
    assert_eq!(ours(beside(1000)(1000), beside(700)(1300)), Change::Same);
    // A step of the clock.
    let mut coarse = beside(1000)(1000);
    coarse.machine.clock_step_ns = 400.0;
    assert_eq!(ours(coarse, beside(1000)(1300)), Change::Same);
}

#[test]
fn regression_needs_confirmation_by_second_run() {
    let of =
        |a, b| run(vec![row("rtos/a/punctual", "Punctual", a), row("latency/b/punctual", "Punctual", b)]);
    let old = of(1000, 1000);
    let mut comparison = Comparison::new(&old, &of(2000, 2000));
    assert_eq!(comparison.suites_with_slower_rows(), [suites::rtos::NAME, suites::latency::NAME]);
    comparison.confirm(&Comparison::new(&old, &of(1000, 2000)));
    assert_eq!((comparison.regressions(), comparison.rows[0].change), (1, Change::Same));
    assert_eq!(comparison.suites_with_slower_rows(), [suites::latency::NAME]);
    // Rows that a later run has not measured are unchanged.
    comparison.confirm(&Comparison::new(&old, &run(Vec::new())));
    assert_eq!(comparison.regressions(), 1);
    assert!(comparison.notes.join("").contains("1 rows were slower"), "{comparison:?}");
}

#[test]
fn judges_own_rows_relative_to_peers() {
    let beside = |ours, other| {
        run(vec![row("latency/a/punctual/idle", "Punctual", ours), row("executors/x/tokio", "tokio", other)])
    };
    let changes = |old: &Run, new: &Run| -> Vec<Change> {
        Comparison::new(old, new).rows.iter().map(|row| row.change).collect()
    };
    assert_eq!(changes(&beside(1000, 1000), &beside(1600, 1000)), [Change::Slower, Change::Same]);
    assert_eq!(changes(&beside(1000, 1000), &beside(1600, 2000)), [Change::Same; 2]);
    let mut loaded = beside(1600, 2000);
    loaded.suites[0].rows[1].condition = Some("load".into());
    let mut before = beside(1000, 1000);
    before.suites[0].rows[1].condition = Some("load".into());
    assert_eq!(changes(&before, &loaded), [Change::Slower, Change::Same], "beside a load more moves");
}

#[test]
fn reports_no_regression_for_one_outlier() {
    let old = run(vec![row("a", "Punctual", 1000)]);
    let mut new = old.clone();
    new.suites[0].rows[0].figures.as_mut().unwrap().max_ns *= 1000.0;
    let comparison = Comparison::new(&old, &new);
    assert_eq!((comparison.regressions(), comparison.rows[0].change), (0, Change::Same));
    assert!((comparison.rows[0].max_ratio.unwrap() - 1000.0).abs() < 1e-6);
}

#[test]
fn compares_excess_of_delays() {
    let delayed = |ns: u64| {
        let mut row = row("a", "Punctual", ns);
        row.nominal_ns = Some(10_000.0);
        run(vec![row])
    };
    let comparison = Comparison::new(&delayed(11_000), &delayed(14_000));
    // From 1.5 to 4.7 µs in excess of the 10 µs.
    assert!((comparison.rows[0].p50_ratio.unwrap() - 4.7 / 1.55).abs() < 0.05, "{comparison:?}");
    // A time that may be early, such as the period of pulses, is compared as a whole.
    let early = Comparison::new(&delayed(9_000), &delayed(18_000));
    assert!((early.rows[0].p50_ratio.unwrap() - 2.0).abs() < 0.01, "{early:?}");
}

#[test]
fn counts_excess_delays_as_noise() {
    let delayed = |ours, peer| {
        let [mut ours, mut peer] = [row("a/x/punctual", "Punctual", ours), row("a/x/posix", "POSIX", peer)];
        ours.nominal_ns = Some(10_000.0);
        peer.nominal_ns = Some(10_000.0);
        run(vec![ours, peer])
    };
    // Both are twice as late, which is a tenth of the whole time.
    let comparison = Comparison::new(&delayed(11_500, 11_500), &delayed(13_200, 13_200));
    assert!(comparison.rows[0].p50_ratio.unwrap() > 1.5, "{comparison:?}");
    assert_eq!(comparison.regressions(), 0, "{comparison:?}");
    let only_ours = Comparison::new(&delayed(11_500, 11_500), &delayed(15_500, 11_500));
    assert_eq!(only_ours.regressions(), 1, "{only_ours:?}");
}

#[test]
fn skips_meaningless_rows_in_comparison() {
    let old = run(vec![row("a", "Punctual", 1000)]);
    let mut new = run(vec![row("a", "Punctual", 9000)]);
    new.suites[0].rows[0].why.push("no SCHED_FIFO".into());
    let comparison = Comparison::new(&old, &new);
    assert_eq!((comparison.regressions(), comparison.rows[0].change), (0, Change::NotComparable));
}

#[test]
fn reports_newly_broken_rule_as_regression() {
    let old = run(Vec::new());
    let mut new = old.clone();
    new.suites[0].checks[0].verdict = Verdict::Failed;
    assert_eq!(Comparison::new(&old, &new).regressions(), 1);
    assert_eq!(Comparison::new(&new, &old).regressions(), 0);
}

#[test]
fn lists_differences_between_runs() {
    let old = run(vec![row("a", "Punctual", 10), row("b", "Punctual", 10)]);
    let mut new = run(vec![row("a", "Punctual", 10)]);
    new.machine.kernel = "7.0".into();
    let notes = Comparison::new(&old, &new).notes.join("\n");
    assert!(
        notes.contains("the kernel: Linux 6.18") && notes.contains("1 rows are in the old one only"),
        "{notes}"
    );
}

#[test]
fn reports_conditions_of_the_earlier_run() {
    let mut old = run(vec![row("a", "Punctual", 10)]);
    let new = old.clone();
    old.machine.notes.push("a time is a number of instructions".into());
    assert_eq!(Comparison::new(&old, &new).notes, ["Of the earlier run: a time is a number of instructions"]);
    assert_eq!(Comparison::new(&old, &old).notes, [""; 0]);
}

#[test]
fn round_trips_run_through_json() {
    let run = run(vec![row("a", "Punctual", 1234)]);
    let text = serde_json::to_string(&run).unwrap();
    assert_eq!(parse(&text, Path::new("run.json")).unwrap(), run);
}

#[test]
fn rejects_other_files_with_reason() {
    let of = |text: &str| parse(text, Path::new("old.json")).unwrap_err().to_string();
    assert!(of("{").starts_with("old.json is not a result of `punctual bench --json`: EOF"));
    assert!(of("[1]").contains("its `format` is not"));
    assert!(of(r#"{"format":"punctual-bench"}"#).contains("its `version` is not a number"));
    assert_eq!(
        of(r#"{"format":"punctual-bench","version":7}"#),
        "old.json has version 7 of the schema, and this program reads version 1"
    );
    assert!(of(r#"{"format":"punctual-bench","version":1}"#).contains("missing field"));
    assert!(matches!(load(Path::new("/no/such/file")), Err(LoadError::Unreadable { .. })));
}

#[test]
fn places_peers_next_to_equivalent_rows() {
    let kernel = row("rtos/switch/kernel", "punctual-kernel", 55);
    let unknown = Row { operation: "Something else".into(), ..kernel.clone() };
    let old = run(vec![kernel, unknown]);
    let new = run(vec![row("a", "Punctual", 1000), row("b", "POSIX", 2000)]);
    let comparison = Comparison::new(&old, &new);
    let subjects: Vec<&str> = comparison.beside[0].rows.iter().map(|row| row.subject.as_str()).collect();
    assert_eq!(subjects, ["Punctual", "POSIX", "punctual-kernel"]);
    assert_eq!(comparison.regressions(), 0);
    for text in [crate::text::comparison(&comparison), crate::html::page(&new, Some(&comparison))] {
        assert!(text.contains("punctual-kernel") && !text.contains("Something else"), "{text}");
    }
    // Subjects that both have measured are compared instead.
    assert!(Comparison::new(&new, &new).beside.is_empty());
}
