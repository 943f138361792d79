//! The profile of a run: exact, in virtual time, and without silent omissions.

mod ends;
mod nested;
mod parallel;
#[path = "../../../examples/response_bounds.rs"]
mod response_bounds;
mod spawns;

use std::fs;
use std::path::{Path, PathBuf};

/// A file for this test, removed on drop.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("punctual-profile-{}-{name}", std::process::id())))
    }

    fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the contents, without the machine.
    fn text(&self) -> String {
        let text = fs::read_to_string(&self.0).expect("the profile was written");
        text.lines().filter(|line| !line.contains("\"machine\"")).map(|line| format!("{line}\n")).collect()
    }

    /// Returns the part on a task.
    fn task(&self, name: &str) -> String {
        let text = self.text();
        let start = text.find(&format!("\"name\": \"{name}\"")).expect("every task is there");
        let end = text[start..].find("\n    }").expect("it ends");
        // One or several values per line make no difference.
        text[start..start + end].split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Checks that each of `parts` is in `text`.
#[track_caller]
fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part}\nis not in\n{text}");
    }
}

/// An example, with the bounds that its documentation derives.
mod bounds {
    use punctual_process::child::{BoundedCommand, TEST_LIMIT};

    use super::{File, assert_has, response_bounds};
    use crate::process;

    #[test]
    #[ignore = "a program that the other test runs"]
    fn program() {
        process::exit(response_bounds::main());
    }

    #[test]
    fn responses_are_within_bounds_and_critical_instant_attains_it() {
        let file = File::new("bounds");
        let mut command = process::program("profile::bounds::program");
        command.env("PUNCTUAL_PROFILE", file.path()).env("PUNCTUAL_PORT", "virtual");
        let output = command.output_within(TEST_LIMIT).expect("the program can be started");
        assert!(output.status.success(), "{output:?}");
        let response = |task: &str| -> u64 {
            let text = file.task(task);
            let (_, rest) = text.split_once("\"response_max_ns\": ").expect("it was measured");
            rest.split(',').next().and_then(|number| number.parse().ok()).expect("it is a number")
        };
        assert!(response("middle") <= 400_000);
        assert_eq!(response("low"), 1_200_000, "all are released at once, at the start");
        assert_eq!(response("high"), 198_000, "`low` has begun its critical section 2 us before");
        let low = [
            "\"execution_max_ns\": 800000, \"execution_min_ns\": 800000",
            "\"longest_ns\": 100000, \"most_per_job\": 1",
            // Released at once with the others, it starts after them and is not late.
            "\"jitter_max_ns\": 300000, \"lateness_max_ns\": 0, \"lateness_min_ns\": 0",
        ];
        assert_has(&file.task("low"), &low);
    }
}
