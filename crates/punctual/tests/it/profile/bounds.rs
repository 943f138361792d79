//! An example, with the bounds that its documentation derives.

#[path = "../../../examples/response_bounds.rs"]
mod response_bounds;

use punctual_process::child::{BoundedCommand, TEST_LIMIT};

use crate::process;
use crate::profile::{File, assert_has};

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
