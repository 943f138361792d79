//! Fuzz entry points: one function for each reader, for `cargo xtask fuzz models` and for the test
//! `hostile`, which runs without the fuzzer.

use punctual_analysis::measured::{self, Source};
use punctual_analysis::schema::{self, InputError};
use punctual_analysis::system::System;

/// Passes an input to the target with this name.
pub(crate) fn run(target: &str, data: &[u8]) {
    match target {
        "app" => app(data),
        "taskset" => taskset(data),
        _ => unreachable!("the manifest has no target `{target}`"),
    }
}

/// Reads arbitrary text as a task set in TOML or JSON.
fn taskset(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    check(schema::read("fuzz", text));
}

/// Reads two arbitrary texts, separated by a zero byte, as the declared model of an app and the
/// profile of a run, and the second also as a profile of the task set that the first describes.
fn app(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (first, second) = text.split_once('\0').unwrap_or((text, text));
    let profile = Source { file: "fuzz", text: second };
    for without in [&[][..], &["a".to_owned()]] {
        check(measured::read(Source { file: "fuzz", text: first }, profile, Some(2), without));
    }
    if let Ok(mut system) = schema::read("fuzz", first)
        && let Err(error) = measured::compare(&mut system, profile)
    {
        check(Err(error));
    }
}

/// Checks that a system is consistent, and that an error states place, reason and remedy.
fn check(outcome: Result<System, InputError>) {
    match outcome {
        Ok(system) => {
            let (partitions, resources) = (system.partitions.len(), system.resources.len());
            for task in &system.tasks {
                assert!(task.partition < partitions);
                assert!(task.sections.iter().all(|it| it.resource < resources));
                assert!(task.spawns.iter().all(|it| it.task < system.tasks.len()));
            }
            for partition in 0..partitions {
                assert!(punctual_analysis::utilization(&system, partition).as_f64() >= 0.0);
            }
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.starts_with("fuzz:") && text.contains("fix: "), "{text}");
        }
    }
}
