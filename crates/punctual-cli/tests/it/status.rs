//! Exit statuses that all commands share.

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;

use punctual_process::child::{BoundedCommand, TEST_LIMIT};

use crate::support::{Scratch, punctual, text};

const MISSING: &str = "/no/such/input";

/// A call for each input of each command, which is missing.
const INPUTS: [&[&str]; 25] = [
    &["bench", "--compare", MISSING],
    &["bench", "compare", MISSING, MISSING],
    &["check", "--", MISSING],
    &["check", "--machine", MISSING],
    &["check", "--trace", MISSING],
    &["doctor", "--", MISSING],
    &["doctor", "--machine", MISSING],
    &["isolate", "run", "--cpus", "0", "--", MISSING],
    &["man", MISSING],
    &["new", "my-crate", "--path", MISSING],
    &["recover", MISSING],
    &["replay", MISSING, "--", "true"],
    &["rta", "--", MISSING],
    &["rta", "--trace", MISSING],
    &["rta", MISSING],
    &["rta", MISSING, "--profile", MISSING],
    &["set", "app", "--file", MISSING],
    &["supervise", "--", MISSING],
    &["supervise", "--cpus", "0", "--", MISSING],
    &["trace", "convert", MISSING],
    &["trace", "latency", MISSING],
    &["trace", "merge", MISSING, MISSING],
    &["trace", "record", "--", MISSING],
    &["trace", "report", MISSING],
    &["trace", "watch", "--", MISSING],
];

/// Commands that read no file and run no program.
const WITHOUT_INPUT: [&str; 9] = [
    "completions",
    "get",
    "isolate boot",
    "isolate plan",
    "isolate start",
    "isolate status",
    "isolate stop",
    "isolate verify",
    "top",
];

/// Commands whose only input is another machine.
const OF_NETWORK: [&str; 1] = ["trace exchange"];

/// Flags whose files are written.
const OUTPUT_FLAGS: [&str; 6] = ["--csv", "--html", "--json", "--output", "--perfetto", "--record"];

#[test]
fn missing_input_is_always_status_2() {
    let scratch = Scratch::new("missing-input");
    for arguments in INPUTS {
        let mut command = punctual(arguments);
        let output = command.current_dir(&scratch.0).stdin(Stdio::null()).output_within(TEST_LIMIT).unwrap();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(MISSING), "{arguments:?}: {error}");
    }
}

#[test]
fn rejects_two_deadlines_of_one_task() {
    let deadlines = ["--deadline", "a=1ms", "--deadline", "b=1ms", "--deadline", "a=2ms"];
    for command in
        [&["check"][..], &["rta", "--trace", MISSING], &["trace", "report", MISSING], &["trace", "watch"]]
    {
        let output = punctual(&[command, &deadlines].concat()).output_within(TEST_LIMIT).unwrap();
        let error = text(&output.stderr);
        assert_eq!((output.status.code(), &*error), (Some(2), "error: --deadline: two for `a`; give one\n"));
    }
}

#[test]
fn every_command_and_every_flag_with_a_file_has_an_entry() {
    let scratch = Scratch::new("inputs");
    let made = punctual(&["man", scratch.0.to_str().unwrap()]).status_within(TEST_LIMIT).unwrap();
    assert!(made.success());
    let pages = fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().path());
    let pages: Vec<(String, String)> = pages
        .map(|page| {
            let name = page.file_stem().unwrap().to_str().unwrap().replace('-', " ");
            (name.trim_start_matches("punctual").trim().to_owned(), fs::read_to_string(page).unwrap())
        })
        .collect();
    let has_commands = |name: &str| pages.iter().any(|(other, _)| other.starts_with(&format!("{name} ")));
    let with_input = |name: &str| INPUTS.iter().any(|words| words.join(" ").starts_with(name));
    let (mut commands, mut flags) = (BTreeSet::new(), BTreeSet::new());
    for (name, page) in pages.iter().filter(|(name, _)| !name.is_empty()) {
        // `bench` also measures without a subcommand.
        if (!has_commands(name) || name == "bench") && !with_input(name) {
            commands.insert(name.as_str());
        }
        for line in page.lines().filter(|line| line.starts_with("\\fB") && line.contains("\\fI<")) {
            let line = line.replace("\\-", "-");
            let (flag, value) = line.split_once("\\fI<").unwrap();
            let is_file = ["FILE", "DIR", "OLD"].iter().any(|kind| value.contains(kind));
            let Some(flag) = flag.split("\\fB").find(|part| part.starts_with("--")) else { continue };
            let flag = flag.split('\\').next().unwrap();
            let is_read =
                INPUTS.iter().any(|words| words.join(" ").starts_with(name) && words.contains(&flag));
            if is_file && !is_read && !OUTPUT_FLAGS.contains(&flag) {
                flags.insert(format!("{name} {flag}"));
            }
        }
    }
    let expected: BTreeSet<&str> = WITHOUT_INPUT.into_iter().chain(OF_NETWORK).collect();
    assert_eq!(commands, expected, "each command has an entry");
    assert_eq!(flags, BTreeSet::new(), "each flag with a file has an entry");
}
