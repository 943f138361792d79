//! What a profile says of the rest of the machine, and tasks that had no job.

use punctual_analysis::analyse;
use punctual_analysis::measured::{Source, read};
use punctual_analysis::system::System;

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

/// `outside` are the figures of what the rest of the machine took.
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
fn counts_what_the_machine_takes_once_and_not_in_every_execution() {
    let without = ["steer".to_owned()];
    let all = combined("", &without).unwrap();
    assert_eq!((all.tasks[0].execution, all.interrupts.len()), (90_000, 0));
    let system = combined(r#""cpu_max_ns": 7000, "outside_max_ns": 85000,"#, &without).unwrap();
    let machine = &system.interrupts[0];
    assert_eq!((system.tasks[0].execution, machine.execution), (7_000, 85_000));
    // At most once in a time as long as the run.
    assert_eq!(machine.arrivals.before(1_000_000_000), Some(1));
    let response = analyse(&system).tasks[0].as_ref().unwrap().response;
    assert_eq!(response, 92_000);
    assert!(
        system.assumptions.iter().any(|it| it.contains("once in a busy window")),
        "{:?}",
        system.assumptions
    );
}

/// What a job waits for before it starts, others have in their terms.
#[test]
fn lateness_is_what_nobody_in_the_partition_took() {
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
fn leaves_out_tasks_that_are_named() {
    let error = combined("", &[]).unwrap_err();
    assert!(error.contains("no job of `steer` was measured") && error.contains("--without NAME"), "{error}");
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
fn says_that_spawns_and_holds_were_not_measured() {
    let system = combined("", &["steer".to_owned()]).unwrap();
    assert!(
        system.assumptions.iter().any(|it| it.contains("does not say `profile`")),
        "{:?}",
        system.assumptions
    );
}
