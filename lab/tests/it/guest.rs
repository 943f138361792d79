//! `cargo xtask lab run` with a real guest: exit statuses, files, and every kind of failure.
//!
//! Skipped with a message if QEMU or the kernel is missing: a test downloads nothing.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::MutexGuard;
use std::thread;
use std::time::{Duration, Instant};

use punctual_process::child::{BoundedChild, BoundedCommand, TEST_LIMIT};
use test_skip::{Need, alone, skip};

use crate::{Ran, cache};

/// Returns the turn of one test, since emulated machines slow each other down; `None` if the test
/// cannot run.
fn turn() -> Option<MutexGuard<'static, ()>> {
    let ends_well =
        |command: &mut Command| command.output_within(TEST_LIMIT).is_ok_and(|output| output.status.success());
    let qemu = ends_well(Command::new("qemu-system-x86_64").arg("--version"));
    if qemu && ends_well(&mut crate::lab(&["kernel", "--cached", "rt"])) {
        return Some(alone());
    }
    let need = if qemu { Need::LabKernel } else { Need::Tool("qemu-system-x86_64") };
    skip(need, "a guest");
    None
}

/// Runs `lab run` with `words`, interrupts it after `interrupt`, and requires that nothing remains
/// of it.
fn lab(words: &[&str], interrupt: Option<Duration>) -> Ran {
    let child = crate::lab(&["run"]).args(words).spawn().expect("the binary was built");
    let id = child.id();
    if let Some(after) = interrupt {
        thread::spawn(move || {
            thread::sleep(after);
            Command::new("kill")
                .args(["-INT", &id.to_string()])
                .status_within(TEST_LIMIT)
                .expect("there is a kill");
        });
    }
    let output = child.output_within(TEST_LIMIT).expect("it was started");

    let ours = format!("/work-{id}-");
    for entry in fs::read_dir(cache()).expect("there is a cache") {
        let path = entry.expect("it can be read").path();
        assert!(!path.display().to_string().contains(&ours), "{} is left", path.display());
    }
    for process in fs::read_dir("/proc").expect("this is Linux").flatten() {
        let words = fs::read(process.path().join("cmdline")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&words).contains(&ours), "{} is left", process.path().display());
    }
    Ran::new(output)
}

#[test]
fn brings_back_status_output_and_files() {
    let Some(_turn) = turn() else { return };
    let results = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("lab-results");
    let _ = fs::remove_dir_all(&results);
    let directory = results.display().to_string();
    let script = "grep -c PREEMPT_RT /proc/version; echo err >&2; mkdir d; echo file >d/f; exit 3";
    let ran = lab(&["--results", &directory, "--", "sh", "-c", script], None);
    ran.ends_with(3, &["err\n", "command started after", "1 file in"]);
    assert_eq!(ran.stdout, "1\n");
    assert_eq!(fs::read_to_string(results.join("d/f")).unwrap(), "file\n");
}

#[test]
fn returns_files_of_counted_run() {
    let Some(_turn) = turn() else { return };
    let results = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("lab-results-counted");
    let _ = fs::remove_dir_all(&results);
    let directory = results.display().to_string();
    let script = "mkdir d; echo file >d/f; echo other >g; exit 4";
    let ran = lab(&["--icount", "--results", &directory, "--", "sh", "-c", script], None);
    ran.ends_with(4, &["2 files in"]);
    assert_eq!(fs::read_to_string(results.join("d/f")).unwrap(), "file\n");
    assert_eq!(fs::read_to_string(results.join("g")).unwrap(), "other\n");
}

#[test]
fn stops_at_broken_pipe() {
    let Some(_turn) = turn() else { return };
    // Without a closed pipe it would run for the whole time limit.
    let script = "while echo line; do sleep 0.1; done; sleep 1000";
    let mut child = crate::lab(&["run", "--timeout", "600", "--", "sh", "-c", script]).spawn().unwrap();
    let mut line = String::new();
    let mut stdout = io::BufReader::new(child.stdout.take().unwrap());
    io::BufRead::read_line(&mut stdout, &mut line).unwrap();
    assert_eq!(line, "line\n");
    drop(stdout);
    let ran = Ran::new(child.output_within(TEST_LIMIT).unwrap());
    ran.ends_with(141, &[]);
    assert_eq!(ran.stderr, "");
}

#[test]
fn rejects_unwritable_results_directory() {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("a-file");
    fs::write(&file, "").unwrap();
    for impossible in [file.join("below"), file, PathBuf::from("/proc/results")] {
        // Neither QEMU nor a kernel is needed for this check.
        let ran = Ran::of(&mut crate::lab(&["run", "--results", &impossible.display().to_string(), "true"]));
        ran.ends_with(125, &["lab: --results: "]);
    }
}

#[test]
fn shows_options_of_run() {
    for words in [&["--help"][..], &["-h"], &["--icount", "--help"]] {
        let ran = Ran::of(crate::lab(&["run"]).args(words));
        ran.ends_with(0, &[]);
        let printed = ran.stdout;
        assert!(printed.contains("--icount") && printed.contains("--results <DIR>"), "{words:?}: {printed}");
    }
}

#[test]
fn streams_output_while_command_runs() {
    let Some(_turn) = turn() else { return };
    let mut command = crate::lab(&["run", "--", "sh", "-c", "echo first; sleep 2; echo second"]);
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let mut lines = io::BufRead::lines(io::BufReader::new(child.stdout.take().unwrap()));
    assert_eq!(lines.next().unwrap().unwrap(), "first");
    let first = Instant::now();
    assert_eq!(lines.next().unwrap().unwrap(), "second");
    assert!(first.elapsed() > Duration::from_millis(500), "both lines came at once");
    assert!(child.status_within(TEST_LIMIT).unwrap().success());
}

#[test]
fn kills_hanging_command() {
    let Some(_turn) = turn() else { return };
    lab(&["--timeout", "8", "sleep", "1000"], None).ends_with(124, &["within 8 s (--timeout)", "console"]);
}

#[test]
fn stops_when_interrupted() {
    let Some(_turn) = turn() else { return };
    lab(&["sleep", "1000"], Some(Duration::from_secs(4))).ends_with(130, &["interrupted"]);
}

#[test]
fn reports_kernel_panic() {
    let Some(_turn) = turn() else { return };
    let ran = lab(&["--", "sh", "-c", "echo c >/proc/sysrq-trigger; sleep 100"], None);
    ran.ends_with(125, &["kernel panicked: Kernel panic", "sysrq triggered crash", "the end of the console"]);
}

#[test]
fn reports_out_of_memory() {
    let Some(_turn) = turn() else { return };
    lab(&["--memory", "128", "tail", "/dev/zero"], None)
        .ends_with(137, &["ran out of its 128 MB", "Killed process"]);
}

#[test]
fn reports_memory_too_small_to_boot() {
    let Some(_turn) = turn() else { return };
    let ran = lab(&["--memory", "64", "true"], None);
    ran.ends_with(125, &["the end of the console"]);
}

#[test]
fn errors_list_known_kernels_and_modules() {
    fs::create_dir_all(cache()).unwrap();
    lab(&["--kernel", "windows", "true"], None).ends_with(125, &["no kernel `windows`", "`rt-probe`"]);
    lab(&["--module", "teapot", "true"], None).ends_with(125, &["no module `teapot`", "punctual_locks"]);
}

#[test]
fn loads_module_with_parameters() {
    let Some(_turn) = turn() else { return };
    for mode in [&["--icount"][..], &["--cpus", "1"]] {
        let module = ["--module", "punctual_locks max_us=77"];
        let command = ["cat", "/sys/module/punctual_locks/parameters/max_us"];
        let ran = lab(&[mode, &module, &command].concat(), None);
        ran.ends_with(0, &[]);
        assert_eq!(ran.stdout, "77\n");
    }
}

#[test]
fn ends_when_module_cannot_be_loaded() {
    let Some(_turn) = turn() else { return };
    lab(&["--module", "punctual_responder form=soft", "true"], None)
        .ends_with(125, &["cannot load punctual_responder.ko form=soft", "it is threaded or hard"]);
}
