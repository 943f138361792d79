//! `punctual doctor`: its exit status, its output as JSON, and that fixes can be undone.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use punctual_process::child::{BoundedChild, BoundedCommand, TEST_LIMIT};
use serde_json::Value;

use crate::support::{Scratch, contents, program, punctual, text, write_tree};
use xtask_support::schema::Schema;

/// Returns a recorded machine of the library's tests.
fn machine(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../punctual-isolate/tests/machines")
        .join(name)
        .with_extension("txt")
}

fn run(arguments: &[&str]) -> Output {
    punctual(arguments).stdin(Stdio::null()).output_within(TEST_LIMIT).unwrap()
}

/// Returns a directory with files of a minimal machine.
fn tree(scratch: &Scratch) -> PathBuf {
    let root = scratch.file("root");
    let files = [
        ("sys/devices/system/cpu/online", "0-3\n"),
        ("sys/devices/system/cpu/isolated", "3\n"),
        ("proc/version", "Linux version 6.12 PREEMPT_RT\n"),
        ("proc/cmdline", "isolcpus=domain,3 nohz_full=3 rcu_nocbs=3\n"),
        ("sys/devices/system/cpu/nohz_full", "3\n"),
        ("proc/self/status", "CapEff:\tffffffffffffffff\n"),
        ("proc/sys/kernel/timer_migration", "1\n"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always\n"),
        ("sys/devices/virtual/workqueue/cpumask", "f\n"),
        ("sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "ondemand\n"),
        ("proc/interrupts", "CPU0 CPU1 CPU2 CPU3\n 24: 1 2 3 4 eth0\n"),
        ("proc/irq/24/smp_affinity_list", "0-3\n"),
    ];
    write_tree(&root, &files);
    root
}

#[test]
fn exit_status_reflects_fitness() {
    let status = |name: &str| run(&["doctor", "--machine", machine(name).to_str().unwrap()]).status.code();
    assert_eq!(status("prepared"), Some(0));
    assert_eq!(status("rt-pi"), Some(1));
    for bad in [
        &["doctor", "--cpus", "x"][..],
        &["doctor", "--cpus", "4000"],
        &["doctor", "--machine", "/no/such/file"],
        &["doctor", "--machine", "/dev/null"],
        &["doctor", "--machine", "Cargo.toml"],
        &["doctor", "--json", "--fix"],
        &["doctor", "--", "/no/such/app"],
        &["doctor", "--", "true"],
    ] {
        let output = run(bad);
        assert_eq!(output.status.code(), Some(2), "{bad:?}");
        let error = text(&output.stderr);
        let has_remedy = error.contains("give ") || error.contains("; online: ") || error.contains("--help");
        assert!(error.starts_with("error: ") && has_remedy, "{bad:?}: {error}");
    }
}

#[test]
fn json_of_this_machine_matches_schema() {
    let schema = Schema::new(include_str!("../../../../docs/doctor-schema.json"));
    let output = run(&["doctor", "--json"]);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    schema.assert(&document);
    assert_eq!(document["fit"], output.status.code() == Some(0));
}

#[test]
fn lists_every_check_with_its_status_and_value() {
    let pi = machine("rt-pi");
    let json = run(&["doctor", "--json", "--machine", pi.to_str().unwrap()]);
    let document: Value = serde_json::from_slice(&json.stdout).unwrap();
    let checks = document["checks"].as_array().unwrap();
    let status = |name: &str| checks.iter().find(|check| check["check"] == name).unwrap();
    assert_eq!(
        status("preempt-rt"),
        &serde_json::json!({ "check": "preempt-rt", "status": "good", "value": "PREEMPT_RT" })
    );
    assert_eq!(status("throttling")["status"], "finding");
    assert_eq!(status("preemption")["status"], "not applicable");
    assert_eq!(
        status("timers"),
        &serde_json::json!({ "check": "timers", "status": "unknown", "value": null })
    );
    let all = text(&run(&["doctor", "--all", "--machine", pi.to_str().unwrap()]).stdout);
    for check in checks {
        let name = check["check"].as_str().unwrap();
        assert!(all.lines().any(|line| line.split_whitespace().next() == Some(name)), "{name}: {all}");
    }
}

#[test]
fn examines_recordings_of_other_machines() {
    let scratch = Scratch::new("doctor-record");
    let path = scratch.file("machine.txt");
    let here = run(&["doctor", "--record", path.to_str().unwrap()]);
    assert_eq!(text(&here.stderr), format!("written: {}\n", path.display()));
    let there = run(&["doctor", "--machine", path.to_str().unwrap()]);
    assert_eq!(text(&here.stdout), text(&there.stdout));
}

/// Fixes the machine in a tree, with answers to the questions.
fn answered(root: &Path, answers: &str) -> Output {
    let mut command = Command::new(program());
    command.args(["doctor", "--fix", "--root"]).arg(root);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(answers.as_bytes()).unwrap();
    child.output_within(TEST_LIMIT).unwrap()
}

#[test]
fn fixes_leave_the_report_until_undone() {
    let scratch = Scratch::new("doctor-fix");
    let root = tree(&scratch);
    let doctor = |more: &[&str]| {
        let mut arguments = vec!["doctor", "--root", root.to_str().unwrap()];
        arguments.extend(more);
        run(&arguments)
    };
    let (before, first) = (contents(&root), doctor(&[]));
    assert!(text(&first.stdout).contains("check  interrupts"));
    let fixed = answered(&root, &"y\n".repeat(9));
    assert_eq!(fixed.status.code(), Some(0), "{}", text(&fixed.stderr));
    let report = text(&fixed.stdout);
    assert!(report.contains("changed: /proc/irq/24/smp_affinity_list: `0-3` to `0-2`\n"), "{report}");
    assert!(report.contains("4 settings changed, 0 refused; to undo it: punctual doctor --undo"), "{report}");
    assert_eq!(fs::read_to_string(root.join("proc/irq/24/smp_affinity_list")).unwrap(), "0-2\n");
    let after = doctor(&[]);
    assert!(!text(&after.stdout).contains("--fix applies it"), "{}", text(&after.stdout));
    let undone = doctor(&["--undo"]);
    assert_eq!(undone.status.code(), Some(0));
    assert_eq!(text(&undone.stdout), "4 settings restored\n");
    assert_eq!(contents(&root), before);
    assert_eq!(text(&doctor(&[]).stdout), text(&first.stdout));
    assert_eq!(text(&doctor(&["--undo"]).stdout), "there is nothing to undo\n");
}

#[test]
fn changes_only_confirmed_settings() {
    let scratch = Scratch::new("doctor-ask");
    let root = tree(&scratch);
    let before = contents(&root);
    let answer = |answer: &str| answered(&root, answer);
    assert!(text(&answer("").stdout).contains("nothing was changed"));
    assert_eq!(contents(&root), before);
    // The worst first.
    assert!(text(&answer("y\nn\n").stdout).contains("fixed: "));
    let changed = contents(&root).iter().zip(&before).filter(|(now, then)| now != then).count();
    assert_eq!(changed, 1);
}
