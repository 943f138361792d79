//! Kernel resources that a recording's BPF programs need and leave behind.
#![cfg(feature = "bpf")]

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use punctual_process::child::{BoundedChild, BoundedCommand, TEST_LIMIT};
use punctual_trace::record::{Config, Group, Recording};
use test_skip::{Need, skip};

use crate::recording::{config, play, start, start_with_programs};

/// Environment variable: the role of a child.
const PART: &str = "PUNCTUAL_TEST_SCHEDULE_PART";

/// Returns the BPF programs that a process has open.
fn programs_of(process: u32) -> BTreeSet<u32> {
    let files = fs::read_dir(format!("/proc/{process}/fdinfo")).into_iter().flatten().flatten();
    let number = |file: fs::DirEntry| {
        let text = fs::read_to_string(file.path()).ok()?;
        text.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok())
    };
    files.filter_map(number).collect()
}

/// Waits until the kernel has freed these programs, shortly after their last user; bounded.
fn gone(programs: &BTreeSet<u32>) -> bool {
    let end = Instant::now() + TEST_LIMIT;
    loop {
        // A program of another process may disappear between two calls.
        let loaded = aya::programs::loaded_programs().flatten().map(|program| program.id());
        let is_gone = loaded.collect::<BTreeSet<_>>().is_disjoint(programs);
        if is_gone || Instant::now() > end {
            return is_gone;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn leaves_nothing_in_kernel() {
    let _alone = test_skip::alone();
    let place = tempfile::tempdir().unwrap();
    if std::env::var_os(PART).is_some_and(|part| part == "victim") {
        let Some(_recording) = start_with_programs(config(), &place) else { return };
        loop {
            play();
        }
    }
    let Some(recording) = start_with_programs(config(), &place) else { return };
    let programs = programs_of(std::process::id());
    assert_eq!(programs.len(), 4);
    recording.stop().unwrap();
    assert_eq!(programs_of(std::process::id()), BTreeSet::new());
    assert!(gone(&programs), "{programs:?}");

    let mut victim = child("schedule_kernel::leaves_nothing_in_kernel", "victim");
    let mut victim = victim.env("TMPDIR", place.path()).spawn().unwrap();
    let mut programs = BTreeSet::new();
    // The loop ends with the victim's action, or with its failure.
    let end = Instant::now() + TEST_LIMIT;
    while programs.len() < 4 && victim.try_wait().unwrap().is_none() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
        programs = programs_of(victim.id());
    }
    victim.kill().unwrap();
    victim.status_within(TEST_LIMIT).unwrap();
    assert_eq!(programs.len(), 4);
    assert!(gone(&programs), "{programs:?}");
    // The next recording removes its tracefs instances.
    drop(start(Config::default(), &place.path().join("next")));
}

fn child(test: &str, part: &str) -> Command {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).env(PART, part).stdout(Stdio::null()).stderr(Stdio::null());
    child
}

#[test]
fn names_remedy_without_privilege() {
    let _alone = test_skip::alone();
    let place = tempfile::tempdir().unwrap();
    if std::env::var_os(PART).is_some_and(|part| part == "denied") {
        // Everything else is recorded.
        let recording = Recording::start(config(), &place.path().join("raw")).unwrap();
        let absent = recording.absent().iter().find(|absent| absent.group == Group::Schedule).unwrap();
        assert!(absent.to_string().contains("CAP_BPF and CAP_PERFMON"), "{absent}");
        return;
    }
    let Some(recording) = start_with_programs(config(), &place) else { return };
    drop(recording);
    // As root without any capability: tracefs files can still be used, but BPF cannot.
    let child = child("schedule_kernel::names_remedy_without_privilege", "denied");
    let mut without = Command::new("setpriv");
    without.args(["--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"]);
    without.arg(child.get_program()).args(child.get_args()).env(PART, "denied");
    match without.output_within(TEST_LIMIT) {
        Err(error) => skip(Need::Tool("setpriv"), error),
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
    }
}
