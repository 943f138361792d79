//! `punctual isolate` on a tree of files: this machine is not changed. The lab takes real CPUs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use punctual_process::child::{BoundedChild, BoundedCommand, TEST_LIMIT};
use test_skip::{Need, skip};

use crate::support::{Scratch, contents, punctual, text, write_tree};

/// Files of a machine with four CPUs, the last of which is isolated by a boot parameter.
fn tree(scratch: &Scratch) -> PathBuf {
    let root = scratch.file("root");
    let files = [
        ("sys/devices/system/cpu/online", "0-3\n"),
        ("sys/devices/system/cpu/isolated", "3\n"),
        ("proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"),
        ("sys/fs/cgroup/cgroup.controllers", "cpuset\n"),
        ("sys/fs/cgroup/cgroup.subtree_control", "cpuset\n"),
        ("proc/interrupts", "CPU0 CPU1 CPU2 CPU3\n 24: 1 2 3 4 eth0\u{1b}[2J\n"),
        ("proc/irq/24/smp_affinity_list", "0-3\n"),
        ("proc/irq/default_smp_affinity", "f\n"),
        ("sys/devices/virtual/workqueue/cpumask", "f\n"),
        ("proc/sys/vm/stat_interval", "1\n"),
    ];
    write_tree(&root, &files);
    root
}

fn isolate(root: &Path, words: &[&str]) -> Output {
    let mut arguments = vec!["isolate", "--root", root.to_str().unwrap()];
    arguments.extend(words);
    punctual(&arguments).stdin(Stdio::null()).output_within(TEST_LIMIT).unwrap()
}

#[test]
fn isolates_and_restores_every_byte() {
    let scratch = Scratch::new("isolate");
    let root = tree(&scratch);
    let before = contents(&root);
    let started = isolate(&root, &["start", "--cpus", "3"]);
    assert_eq!(started.status.code(), Some(0), "{}", text(&started.stderr));
    assert_eq!(fs::read_to_string(root.join("proc/irq/24/smp_affinity_list")).unwrap(), "0-2\n");
    assert_eq!(fs::read_to_string(root.join("sys/devices/virtual/workqueue/cpumask")).unwrap(), "7\n");
    let status = isolate(&root, &["status"]);
    assert!(text(&status.stdout).starts_with("the isolation of CPU 3: 4 settings, by punctual ("));
    let second = isolate(&root, &["start", "--cpus", "2"]);
    assert_eq!(second.status.code(), Some(2));
    assert!(
        text(&second.stderr).contains("the isolation of CPU 3: owned by punctual ("),
        "{}",
        text(&second.stderr)
    );
    let stopped = isolate(&root, &["stop"]);
    assert_eq!(
        (stopped.status.code(), text(&stopped.stdout)),
        (Some(0), "undone: the isolation of CPU 3\n".into())
    );
    assert_eq!(contents(&root), before);
    assert_eq!(text(&isolate(&root, &["stop"]).stdout), "nothing is taken\n");
}

#[test]
fn verify_measures_nothing_without_a_journal() {
    let scratch = Scratch::new("isolate-verify");
    let root = tree(&scratch);
    fs::write(root.join("run"), "no directory").unwrap();
    let output = isolate(&root, &["verify", "--cpus", "3"]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("without a journal: run as root") && !error.contains("as it is"), "{error}");
}

#[test]
fn run_forwards_sigint_as_sigint_and_gives_the_cpu_back() {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let Some(cpu) = (0..4).find(|&cpu| allowed.is_set(cpu)) else {
        return skip(Need::System("one of the CPUs 0 to 3"), "a command on a taken CPU");
    };
    let scratch = Scratch::new("isolate-signal");
    let root = tree(&scratch);
    // The command really runs there.
    fs::write(root.join("sys/devices/system/cpu/isolated"), format!("{cpu}\n")).unwrap();
    let before = contents(&root);
    let mut command = punctual(&["isolate", "--root", root.to_str().unwrap()]);
    command.args(["run", "--cpus", &cpu.to_string(), "--no-record", "--", "sh", "-c"]);
    command.arg("trap 'exit 7' INT; trap 'exit 8' TERM; echo > ready; while :; do sleep 0.02; done");
    command.current_dir(&scratch.0).stdin(Stdio::null()).stdout(Stdio::null()).default_signals();
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    while !scratch.file("ready").exists() && begun.elapsed() < TEST_LIMIT {
        assert_eq!(child.try_wait().unwrap(), None);
        std::thread::sleep(Duration::from_millis(10));
    }
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.status_within(TEST_LIMIT).unwrap().code(), Some(7));
    assert_eq!(contents(&root), before);
}

#[test]
fn run_changes_nothing_for_a_missing_command() {
    let scratch = Scratch::new("isolate-missing");
    let root = tree(&scratch);
    let before = contents(&root);
    let missing = isolate(&root, &["run", "--cpus", "3", "--", "no-such-command"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("PATH contains no executable file"), "{}", text(&missing.stderr));
    assert_eq!(contents(&root), before);
    assert!(!root.join("run").exists(), "not even a journal");
}

#[test]
fn undoes_everything_when_kernel_refuses() {
    let scratch = Scratch::new("isolate-refused");
    let root = tree(&scratch);
    let before = contents(&root);
    // A directory is created, but no kernel puts files into it.
    let refused = isolate(&root, &["start", "--cpus", "2"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("cpuset.cpus cannot be set to `2`"), "{}", text(&refused.stderr));
    assert_eq!(contents(&root), before);
    assert_eq!(text(&isolate(&root, &["status"]).stdout), "nothing is taken or changed\n");
}

#[test]
fn plan_and_boot_change_nothing_and_print_nothing_active() {
    let scratch = Scratch::new("isolate-plan");
    let root = tree(&scratch);
    let before = contents(&root);
    for words in [&["plan", "--cpus", "3"], &["boot", "--cpus", "3"]] {
        let output = isolate(&root, words);
        assert_eq!(output.status.code(), Some(0));
        let printed = text(&output.stdout);
        assert!(printed.contains("CPU 3") && !printed.contains('\u{1b}'), "{printed}");
    }
    assert_eq!(contents(&root), before);
    assert!(!root.join("run").exists());
}

#[test]
fn rejects_bad_requests_with_remedy() {
    let scratch = Scratch::new("isolate-bad");
    let root = tree(&scratch);
    for (cpus, what) in [("0-3", "leave at least one"), ("7", "online: 0-3"), ("x", "such as 2 or 2-3")] {
        for command in ["plan", "start"] {
            let output = isolate(&root, &[command, "--cpus", cpus]);
            assert_eq!(output.status.code(), Some(2), "{command} {cpus}");
            assert!(text(&output.stderr).contains(what), "{command} {cpus}: {}", text(&output.stderr));
        }
    }
}

#[test]
fn restores_everything_after_kill_at_any_time() {
    let scratch = Scratch::new("isolate-killed");
    let root = tree(&scratch);
    // Its values have different lengths. A kernel file changes from one value to another in one
    // step; a file of this tree only if they have the same length.
    fs::remove_file(root.join("proc/sys/vm/stat_interval")).unwrap();
    let before = contents(&root);
    // xorshift64
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut undone = 0;
    for round in 0..50 {
        for words in [&["start", "--cpus", "3"][..], &["stop"]] {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let mut command = punctual(&["isolate", "--root", root.to_str().unwrap()]);
            command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            std::thread::sleep(std::time::Duration::from_micros(random % 12_000));
            // It may have ended already.
            child.kill().unwrap();
            child.status_within(TEST_LIMIT).unwrap();
        }
        let stopped = isolate(&root, &["stop"]);
        assert_eq!(stopped.status.code(), Some(0), "round {round}: {}", text(&stopped.stderr));
        undone += u32::from(text(&stopped.stdout).starts_with("undone"));
        assert_eq!(contents(&root), before, "round {round}");
    }
    println!("the last call had something to undo {undone} times of 50");
}
