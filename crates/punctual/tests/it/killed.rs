//! A killed app leaves nothing behind in the system: no process, no bound on idle states, no group,
//! no file, and no change of other processes' scheduling.
#![cfg(feature = "signals")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::{leftovers, privileges, process, tracefs};
use leftovers::{Before, Moments};
use punctual_process::child::{BoundedChild, TEST_LIMIT};
use rustix::process::{Pid, Signal, kill_process};
use test_skip::{Need, skip};

/// Maximum time until an app is killed, from its start or from its first job.
const MAX_DELAY: Duration = Duration::from_millis(100);

#[punctual::app(main = false, partitions = [home, fast(poll)])]
mod app {
    use std::os::unix::net::UnixStream;

    use punctual::prelude::*;

    #[shared]
    struct Shared {
        count: u64,
    }

    #[local]
    struct Local {
        line: UnixStream,
        other: UnixStream,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let (line, other) = UnixStream::pair().unwrap();
        line.set_nonblocking(true).unwrap();
        (Shared { count: 0 }, Local { line, other })
    }

    #[task(priority = 2, core = home, period = 1.millis(), shared = [count], local = [other])]
    fn beat(mut cx: beat::Context) {
        if cx.shared.count.lock(|count| std::mem::replace(count, *count + 1)) == 0 {
            println!("READY");
        }
        let _ = above::spawn();
        let _ = polled::spawn();
        let _ = rustix::io::write(&*cx.local.other, b"!");
    }

    #[task(priority = 3, core = home, shared = [count])]
    fn above(mut cx: above::Context) {
        cx.shared.count.lock(|count| *count += 1);
    }

    #[task(priority = 1, core = home, binds = line, local = [line])]
    fn edge(cx: edge::Context) {
        let _ = rustix::io::read(&*cx.local.line, &mut [0; 64]);
    }

    #[task(priority = 1, core = fast, capacity = 8)]
    fn polled(_: polled::Context) {}
}

/// Returns the bound on idle states of these tests, in µs. No other process uses it.
fn bound() -> i32 {
    1_000_000 + std::process::id().cast_signed() * 2
}

#[test]
#[ignore = "a program of another test"]
fn program() {
    // A normal end, in case it is not killed.
    process::exit(punctual::export::main(|config| app::run(config.until(punctual::Duration::from_secs(20)))));
}

fn command() -> Command {
    let mut command = process::program("killed::program");
    command.env("PUNCTUAL_WAKE_LATENCY", bound().to_string());
    privileges::no_runaways(&mut command);
    command
}

/// Starts it, optionally waits for its first job, kills it after that time, and returns the
/// leftovers.
fn kill(mut command: Command, ready: bool, after: Duration) -> Vec<String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let before = Before::new(&mut command);
    let mut child = command.spawn().expect("this program can be started again");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
    assert!(!ready || lines.any(|line| line.contains("READY")), "it has ended without a job");
    thread::sleep(after);
    child.kill().expect("a child that has not been waited for can be killed");
    let status = child.status_within(TEST_LIMIT).expect("a child can be waited for");
    assert_eq!(status.code(), None, "it ended by itself: {status:?}");
    let mut left = before.left_by(child.id());
    left.extend(leftovers::instances(&[child.id()]).iter().map(|path| format!("instance {path:?}")));
    if leftovers::wake_latency() == Some(bound()) {
        left.push(format!("a bound of {} µs on idle states", bound()));
    }
    left
}

#[test]
fn killed_app_leaves_nothing_behind() {
    if let Err(why) = tracefs::enter() {
        println!("nothing is marked in a trace: {why}");
    }
    let mut moments = Moments::new();
    for round in 0..leftovers::rounds() {
        let (ready, after) = (round % 2 == 1, moments.next(MAX_DELAY));
        let since = if ready { "its first job" } else { "its start" };
        let mut privileged = command();
        privileged.env("PUNCTUAL_TRACE", "1");
        let unprivileged = privileges::unprivileged(&privileged);
        for command in [privileged, unprivileged] {
            println!("round {round}: killed {after:?} after {since}");
            let left = kill(command, ready, after);
            assert!(left.is_empty(), "round {round}, killed {after:?} after {since}: {left:#?}");
        }
    }
}

/// Checks that the other test would detect leftovers.
#[test]
fn finds_leftovers() {
    let mut command = Command::new("sh");
    command.args(["-c", "sleep 60 & exec true"]).stdin(Stdio::null());
    let before = Before::new(&mut command);
    let mut shell = command.spawn().expect("there is a shell");
    assert!(shell.status_within(TEST_LIMIT).expect("a child can be waited for").success());
    let file = Path::new("/dev/shm").join(format!("left-by-{}", shell.id()));
    File::create(&file).expect("shared memory can be had");

    // At the moment of its `exec` a process has no environment to be identified by.
    let begun = Instant::now();
    let left = loop {
        let left = before.left_now(shell.id());
        if left.len() == 2 || begun.elapsed() > process::LIMIT {
            break left;
        }
        thread::yield_now();
    };
    fs::remove_file(&file).expect("it is ours");
    let [process, found] = &left[..] else { panic!("{left:?}") };
    assert_eq!(*found, format!("file {file:?}"));
    // It may not have become `sleep` yet.
    let process = process.strip_prefix("process /proc/").and_then(|left| left.split(" (").next());
    let process: i32 = process.expect("it is named").parse().expect("by its number");
    kill_process(Pid::from_raw(process).expect("it is not 0"), Signal::KILL).expect("it is ours");
    assert_eq!(before.left_by(shell.id()), [""; 0]);
}

/// Checks that a bound missed above would be detected.
#[test]
fn limit_applies_while_a_guard_exists() {
    let bound = bound() - 1;
    let device = File::options().write(true).open("/dev/cpu_dma_latency");
    match device.and_then(|mut file| file.write_all(&bound.to_ne_bytes()).map(|()| file)) {
        // Other processes may have set a lower one.
        Ok(_held) => assert!(leftovers::wake_latency().is_some_and(|applies| applies <= bound)),
        Err(error) => skip(Need::System("/dev/cpu_dma_latency"), error),
    }
}
