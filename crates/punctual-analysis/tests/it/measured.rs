//! Tests profiles with data about the rest of the machine, and tasks without a job.

use punctual_analysis::measured::{Source, read};
use punctual_analysis::system::System;
use punctual_analysis::{analyze, of_run};

const MODEL: &str = r#"{ "schema": "punctual-model/1", "app": "arm",
  "partitions": [{ "name": "main", "executor": "preemptive", "cpu": null }],
  "tasks": [
    { "name": "sample", "kind": "periodic", "partition": "main", "level": 2, "period_ns": 100000, "offset_ns": 0,
      "deadline_ns": 100000, "min_interval_ns": null, "burst": null, "capacity": 1, "on_overrun": "skip", "on_early": null,
      "uses": [] },
    { "name": "steer", "kind": "message", "partition": "main", "level": 1, "period_ns": null, "offset_ns": null,
      "deadline_ns": null, "min_interval_ns": null, "burst": null, "capacity": 1, "on_overrun": null, "on_early": null,
      "uses": [] }],
  "resources": [], "idle": null }"#;

/// Returns a profile. `outside` contains the figures for the rest of the machine.
fn profile(outside: &str) -> String {
    format!(
        r#"{{ "schema": "punctual-profile/1", "app": "arm", "duration_ns": 1000000000, "clock": "monotonic",
  "tasks": [
    {{ "name": "sample", "jobs": 10000, "execution_max_ns": 90000, "response_max_ns": 95000, "jitter_max_ns": 0,
      "spawns": null, "holds": null, {outside} "suspension_max_ns": 0 }},
    {{ "name": "steer", "jobs": 0, "spawns": null, "holds": null }}],
  "partitions": [{{ "name": "main", "release_ns": 0, "dispatch_ns": 0, "lock_ns": 0, "preemption_ns": 0 }}] }}"#
    )
}

fn combined(outside: &str, without: &[String]) -> Result<System, String> {
    let text = profile(outside);
    let model = Source { file: "model.json", text: MODEL };
    read(model, Source { file: "profile.json", text: &text }, None, without)
        .map_err(|error| error.to_string())
}

#[test]
fn rejects_model_with_more_partitions_than_are_analyzed() {
    let one = r#"{ "name": "main", "executor": "preemptive", "cpu": null }"#;
    let text = MODEL.replace(one, &[one; 1_025].join(","));
    let (model, profile) = (Source { file: "model.json", text: &text }, profile(""));
    let error = read(model, Source { file: "profile.json", text: &profile }, None, &[]).unwrap_err();
    assert!(error.what.contains("there are 1025 partitions, and at most 1024"), "{error}");
}

#[test]
fn counts_machine_interference_once() {
    let without = ["steer".to_owned()];
    let all = combined("", &without).unwrap();
    assert_eq!((all.tasks[0].execution, all.interrupts.len()), (90_000, 0));
    let system = combined(r#""cpu_max_ns": 7000, "outside_max_ns": 85000,"#, &without).unwrap();
    let machine = &system.interrupts[0];
    assert_eq!((system.tasks[0].execution, machine.execution), (7_000, 85_000));
    // At most once in an interval as long as the run.
    assert_eq!(machine.arrivals.before(1_000_000_000), Some(1));
    let response = analyze(&system).tasks[0].as_ref().unwrap().response;
    assert_eq!(response, 92_000);
    assert!(
        system.assumptions.iter().any(|it| it.contains("once in a busy window")),
        "{:?}",
        system.assumptions
    );
}

/// The time that a job waits before it starts is part of the terms of other tasks.
#[test]
fn lateness_excludes_waits_for_the_partition() {
    let without = ["steer".to_owned()];
    let with = |lateness: &str| {
        let profile =
            profile("").replace(r#""jitter_max_ns": 0"#, &format!(r#""jitter_max_ns": 5000{lateness}"#));
        let source = |file, text| Source { file, text };
        read(source("model.json", MODEL), source("profile.json", &profile), None, &without).unwrap()
    };
    assert_eq!(with("").tasks[0].jitter, 5_000);
    assert_eq!(with(r#", "lateness_max_ns": 300"#).tasks[0].jitter, 300);
}

#[test]
fn notes_tasks_without_jobs() {
    let system = combined("", &[]).unwrap();
    assert_eq!(system.tasks.len(), 1);
    let note = "`steer` had no job while the profile was measured, so its C is unknown";
    assert!(system.assumptions.iter().any(|it| it.contains(note)), "{:?}", system.assumptions);
}

#[test]
fn omits_excluded_tasks() {
    let system = combined("", &["steer".to_owned()]).unwrap();
    assert_eq!(system.tasks.len(), 1);
    assert!(
        system.assumptions.iter().any(|it| it.contains("`steer` is left out")),
        "{:?}",
        system.assumptions
    );
    let error = combined("", &["stear".to_owned()]).unwrap_err();
    assert!(error.contains("there is no task `stear`"), "{error}");
}

#[test]
fn reports_unmeasured_spawns_and_holds() {
    let system = combined("", &["steer".to_owned()]).unwrap();
    assert!(
        system.assumptions.iter().any(|it| it.contains("is declared without `profile`")),
        "{:?}",
        system.assumptions
    );
}

/// `sample` calls `act` while it holds the resource that `log` requires, and each job costs 500 to
/// dispatch.
const CALLS: &str = r#"{ "schema": "punctual-model/1", "app": "arm",
  "partitions": [{ "name": "main", "executor": "preemptive", "cpu": null }],
  "tasks": [
    { "name": "act", "kind": "message", "partition": "main", "level": 3, "period_ns": null, "offset_ns": null,
      "deadline_ns": null, "min_interval_ns": null, "burst": null, "capacity": 1, "on_overrun": null, "on_early": null,
      "uses": [] },
    { "name": "sample", "kind": "periodic", "partition": "main", "level": 2, "period_ns": 100000, "offset_ns": 0,
      "deadline_ns": 100000, "min_interval_ns": null, "burst": null, "capacity": 1, "on_overrun": "skip", "on_early": null,
      "uses": [{ "resource": "r", "access": "lock" }] },
    { "name": "log", "kind": "periodic", "partition": "main", "level": 1, "period_ns": 200000, "offset_ns": 0,
      "deadline_ns": 200000, "min_interval_ns": null, "burst": null, "capacity": 1, "on_overrun": "skip", "on_early": null,
      "uses": [{ "resource": "r", "access": "lock" }] }],
  "resources": [{ "name": "r", "ceiling": 2, "protocol": "srp", "group": null, "partitions": ["main"] }], "idle": null }"#;

fn profiled(schema: &str, profiling: &str) -> System {
    let task = |name: &str, c: u64, spawns: &str, holds: &str| {
        format!(
            r#"{{ "name": "{name}", "jobs": 9, "execution_max_ns": {c}, "response_max_ns": 20000, "lateness_max_ns": 0,
              "spawns": [{spawns}], "holds": [{holds}], "suspension_max_ns": 0 }}"#
        )
    };
    let hold = r#"{ "resource": "r", "longest_ns": 1000, "most_per_job": 1 }"#;
    let tasks = [
        task("act", 3_000, "", ""),
        task("sample", 7_000, r#"{ "task": "act", "most_per_job": 1 }"#, hold),
        task("log", 9_000, "", hold),
    ];
    let text = format!(
        r#"{{ "schema": "{schema}", "app": "arm", "tasks": [{}], "partitions": [{{ "name": "main", "release_ns": 0,
          "dispatch_ns": 500, "lock_ns": 0, "preemption_ns": 0{profiling} }}] }}"#,
        tasks.join(", ")
    );
    let model = Source { file: "model.json", text: CALLS };
    read(model, Source { file: "profile.json", text: &text }, None, &[]).unwrap()
}

/// Profiling overhead is part of the observed run, but not of an app without a profile.
#[test]
fn profiling_cost_counts_only_in_bounds_of_the_run() {
    let of = |system: &System| {
        let analysis = analyze(system);
        let bounds: Vec<u64> = analysis.tasks.iter().map(|it| it.as_ref().unwrap().response).collect();
        (bounds, of_run(system, &analysis))
    };
    let old = profiled("punctual-profile/1", "");
    let (plain, of_old_run) = of(&old);
    assert_eq!(plain, [3_500, 12_000, 20_500]);
    assert_eq!(of_old_run, plain.iter().copied().map(Some).collect::<Vec<_>>());
    assert!(old.assumptions.iter().any(|it| it.contains("The cost of profiling")), "{:?}", old.assumptions);

    let costs = r#", "profiling_ns": 5000, "profiling_before_ns": 2000, "profiling_lock_ns": 300"#;
    let new = profiled("punctual-profile/2", costs);
    assert!(!new.assumptions.iter().any(|it| it.contains("The cost of profiling")), "{:?}", new.assumptions);
    let (bounds, of_run) = of(&new);
    assert_eq!(bounds, plain);
    // Of the job's overhead, the part before its end; of the jobs that run first, all of it; and
    // that of the blocking section.
    let expected = [3_500 + 2_000, 12_000 + 2_000 + 5_000 + 300, 20_500 + 2_000 + 2 * 5_000];
    assert_eq!(of_run, expected.map(Some));
}

/// A lateness common to all releases preserves their distance, so a lower job is displaced by one
/// of them, not two.
#[test]
fn constant_lateness_is_not_jitter() {
    let bound = |least: &str| {
        let without = ["steer".to_owned()];
        let text = profile(&format!(r#""lateness_max_ns": 20000, {least}"#));
        let model =
            MODEL.replace("\"level\": 1, \"period_ns\": null", "\"level\": 1, \"period_ns\": 1000000");
        let text = text.replace("90000", "40000").replace(
            r#""name": "steer", "jobs": 0,"#,
            r#""name": "steer", "jobs": 9, "execution_max_ns": 45000, "lateness_max_ns": 0,"#,
        );
        let model = Source { file: "model.json", text: &model };
        let system = read(model, Source { file: "profile.json", text: &text }, None, &without[1..]).unwrap();
        let analysis = analyze(&system);
        let response = |at: usize| analysis.tasks[at].as_ref().unwrap().response;
        [response(0), response(1)]
    };
    assert_eq!(bound(""), [60_000, 125_000]);
    assert_eq!(bound(r#""lateness_min_ns": 5000,"#), [60_000, 85_000]);
    assert_eq!(bound(r#""lateness_min_ns": 4999,"#), [60_000, 125_000]);
}

/// A caller's releases bound those of a task without other callers, and the work of the caller
/// before the spawn is not part of its response.
#[test]
fn spawned_tasks_inherit_arrivals_of_sole_caller() {
    let model = CALLS.replace(
        r#""name": "log", "kind": "periodic", "partition": "main", "level": 1, "period_ns": 200000, "offset_ns": 0,
      "deadline_ns": 200000, "min_interval_ns": null, "burst": null"#,
        r#""name": "log", "kind": "message", "partition": "main", "level": 1, "period_ns": null, "offset_ns": null,
      "deadline_ns": 200000, "min_interval_ns": 200000, "burst": 1"#,
    );
    assert_ne!(model, CALLS);
    let of = |no_job: &str, earliest: &str| {
        let task = |name: &str, c: u64, spawns: &str| {
            format!(
                r#"{{ "name": "{name}", "jobs": 9, "execution_max_ns": {c}, "response_max_ns": 20000, "lateness_max_ns": 0,
                  "spawns": [{spawns}], "spawned_by_no_job": {no_job}, "suspension_max_ns": 0,
                  "holds": [{{ "resource": "r", "longest_ns": 1000, "most_per_job": 1 }}] }}"#
            )
        };
        let spawn = format!(r#"{{ "task": "log", "most_per_job": 1, "earliest_ns": {earliest} }}"#);
        let tasks = [task("act", 3_000, ""), task("sample", 7_000, &spawn), task("log", 9_000, "")];
        let text = format!(
            r#"{{ "schema": "punctual-profile/3", "app": "arm", "tasks": [{}], "partitions": [{{ "name": "main",
              "release_ns": 1000, "dispatch_ns": 500, "lock_ns": 0, "preemption_ns": 0, "profiling_lock_ns": 300 }}] }}"#,
            tasks.join(", ")
        );
        let without = ["act".to_owned()];
        let model = Source { file: "model.json", text: &model };
        let system = read(model, Source { file: "profile.json", text: &text }, None, &without).unwrap();
        analyze(&system).tasks[1].as_ref().unwrap().response
    };
    // C of both with their dispatch, and the kernel's part in the releases of both; or of neither,
    // because the caller's release is over when its job starts.
    let with_own_releases = 7_500 + 9_500 + 2 * 1_000;
    assert_eq!(of("1", "4300"), with_own_releases);
    assert_eq!(of("null", "4300"), with_own_releases);
    // 300 ns of the time before the spawn may be profiling overhead.
    assert_eq!(of("0", "null"), with_own_releases - 2_000);
    assert_eq!(of("0", "4300"), with_own_releases - 2_000 - 4_000);
}

const TWO: &str = r#"{ "schema": "punctual-model/1", "app": "arm",
  "partitions": [{ "name": "near", "executor": "preemptive", "cpu": 0 }, { "name": "far", "executor": "preemptive", "cpu": 1 }],
  "tasks": [
    { "name": "high", "kind": "periodic", "partition": "near", "level": 2, "period_ns": 100000, "offset_ns": null,
      "deadline_ns": 100000, "min_interval_ns": null, "burst": null, "capacity": 1, "on_overrun": "skip", "on_early": null,
      "uses": [{ "resource": "local", "access": "lock" }] },
    { "name": "low", "kind": "periodic", "partition": "near", "level": 1, "period_ns": 100000, "offset_ns": null,
      "deadline_ns": 100000, "min_interval_ns": null, "burst": null, "capacity": 1, "on_overrun": "skip", "on_early": null,
      "uses": [{ "resource": "local", "access": "lock" }, { "resource": "global", "access": "lock" }] },
    { "name": "other", "kind": "periodic", "partition": "far", "level": 1, "period_ns": 100000, "offset_ns": null,
      "deadline_ns": 100000, "min_interval_ns": null, "burst": null, "capacity": 1, "on_overrun": "skip", "on_early": null,
      "uses": [{ "resource": "global", "access": "lock" }] }],
  "resources": [
    { "name": "local", "protocol": "srp", "ceiling": 2, "group": null, "partitions": ["near"] },
    { "name": "global", "protocol": "msrp", "ceiling": 2, "group": 0, "partitions": ["near", "far"] }], "idle": null }"#;

/// `low` holds `local` for 10 µs and `global` for 2 µs, and spins for up to 7 µs.
#[test]
fn requests_of_unknown_nesting_lie_inside_other_sections() {
    let blocking = |nested: &str| {
        let task = |name: &str, holds: &str| {
            format!(
                r#"{{ "name": "{name}", "jobs": 9, "execution_max_ns": 20000, "response_max_ns": 20000, "jitter_max_ns": 0,
                  "spawns": [], "holds": [{holds}], "suspension_max_ns": 0 }}"#
            )
        };
        let hold = |resource: &str, longest: u64, nested: &str| {
            format!(r#"{{ "resource": "{resource}", "longest_ns": {longest}, "most_per_job": 1{nested} }}"#)
        };
        let (high, other) = (hold("local", 1_000, ""), hold("global", 7_000, ""));
        let low = [hold("local", 10_000, ""), hold("global", 2_000, nested)].join(", ");
        let tasks = [task("high", &high), task("low", &low), task("other", &other)].join(", ");
        let partition = |name: &str| {
            format!(
                r#"{{ "name": "{name}", "release_ns": 0, "dispatch_ns": 0, "lock_ns": 0, "preemption_ns": 0 }}"#
            )
        };
        let profile = format!(
            r#"{{ "schema": "punctual-profile/5", "app": "arm", "duration_ns": 1000000, "clock": "virtual",
              "tasks": [{tasks}], "partitions": [{}, {}] }}"#,
            partition("near"),
            partition("far")
        );
        let model = Source { file: "model.json", text: TWO };
        let system = read(model, Source { file: "profile.json", text: &profile }, None, &[]).unwrap();
        let is_assumed = system.assumptions.iter().any(|it| it.contains("while they hold another resource"));
        (analyze(&system).tasks[0].as_ref().unwrap().blocking.unwrap().time, is_assumed)
    };
    assert_eq!(blocking(r#", "nested": false"#), (10_000, false));
    assert_eq!(blocking(r#", "nested": true"#), (17_000, false));
    assert_eq!(blocking(""), (17_000, true));
}
