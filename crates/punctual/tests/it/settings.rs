//! Real-time settings: missing ones are reported, `strict` refuses, invalid ones are named, and all
//! are restored.
#![cfg(feature = "async")]

use std::process::Command;

use crate::process::Ended;
use crate::{privileges, process};
use punctual::{Config, StartError};
use punctual_process::scheduling::Scheduling;
use rustix::thread::{CpuSet, sched_getaffinity};
use test_skip::{Need, skip};

#[punctual::app(main = false)]
mod app {
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::Sender;

    use super::{Seen, inspect};

    #[shared]
    struct Shared {
        seen: Sender<Seen>,
    }

    #[local]
    struct Local {
        line: UnixStream,
        quiet: [UnixStream; 2],
    }

    #[init]
    fn init(_: init::Context, seen: Sender<Seen>) -> (Shared, Local) {
        println!("INIT");
        inspect("init", &seen);
        let [line, quiet] = [(); 2].map(|()| UnixStream::pair().expect("sockets can be made"));
        (Shared { seen }, Local { line: line.0, quiet: quiet.into() })
    }

    #[idle(shared = [&seen])]
    fn idle(cx: idle::Context) {
        inspect("idle", cx.shared.seen);
        task::spawn().expect("the app is running");
    }

    #[task(priority = 3, shared = [&seen])]
    fn task(cx: task::Context) {
        inspect("task", cx.shared.seen);
        waits::spawn().expect("the app is running");
        punctual::shutdown();
    }

    /// Declared for the thread that waits for it.
    #[task(priority = 2, local = [quiet])]
    async fn waits(cx: waits::Context) {
        punctual::readable(&cx.local.quiet[0]).await.expect("nothing is ever there to read");
    }

    /// Declared for its thread: the other end is closed, so it is released, and does nothing.
    #[task(binds = line, priority = 1, local = [line])]
    fn edge(_: edge::Context) {}
}

/// Observed state of threads started from `by`.
#[derive(Debug)]
pub(crate) struct Seen {
    by: &'static str,
    /// The policy and the priority of the thread itself.
    own: (&'static str, i32),
    /// The policy and the CPUs of a helper.
    helper: (i32, CpuSet),
    /// The policy of a plain thread.
    plain: i32,
}

/// Starts threads from here and reports their state.
fn inspect(by: &'static str, seen: &std::sync::mpsc::Sender<Seen>) {
    let helper = punctual::background::spawn("looks", || (policy(), cpus())).expect("threads can be started");
    let plain = std::thread::spawn(policy).join().expect("looking does not panic");
    let helper = helper.join().expect("looking does not panic");
    let own = scheduling();
    seen.send(Seen { by, own: (own.name(), own.priority()), helper, plain })
        .expect("the test keeps the other end");
}

fn scheduling() -> Scheduling {
    Scheduling::current().expect("a thread may read its own policy")
}

fn policy() -> i32 {
    scheduling().policy()
}

fn cpus() -> CpuSet {
    sched_getaffinity(None).expect("a thread may look at its own CPUs")
}

/// Returns whether any memory of this process is locked.
fn memory_is_locked() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process may read its own status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).expect("the kernel tells");
    line.trim() != "0 kB"
}

fn end(mut command: Command) -> Ended {
    privileges::no_runaways(&mut command);
    process::start(command).end()
}

fn contains(ended: &Ended, words: &[&str]) {
    for word in words {
        assert!(ended.output.contains(word), "no `{word}` in:\n{}", ended.output);
    }
}

/// Settings that each thread lacks without privileges, with the remedies.
const MISSING: [&str; 4] = [
    "threads level 3, level 2, level 1, event edge, event async: no SCHED_FIFO: not permitted; run as root, grant \
     CAP_SYS_NICE, or raise",
    "`sudo prlimit --pid $$ --rtprio=99`",
    "memory is not locked: RLIMIT_MEMLOCK is 0 KiB; run as root, grant CAP_IPC_LOCK, or raise",
    "`sudo prlimit --pid $$ --memlock=unlimited`",
];

#[test]
fn runs_unprivileged_and_reports_missing_settings() {
    let ended = end(privileges::unprivileged(&process::program("settings::program")));
    assert_eq!(ended.code, 0, "{}", ended.output);
    contains(&ended, &MISSING);
    contains(&ended, &["punctual: without real-time priorities; everything works", "INIT"]);
}

#[test]
fn strict_rejects_and_names_each_missing_setting_and_remedy() {
    let strict = |value| {
        let mut command = privileges::unprivileged(&process::program("settings::program"));
        command.env("PUNCTUAL_STRICT", value);
        end(command)
    };
    let ended = strict("1");
    assert_eq!(ended.code, 1, "{}", ended.output);
    contains(&ended, &MISSING);
    contains(&ended, &["punctual: strict: the app does not start"]);
    assert!(!ended.output.contains("INIT"), "nothing of it runs:\n{}", ended.output);
    assert_eq!(strict("0").code, 0);
}

#[test]
fn strict_rejects_exactly_missing_settings() {
    let _alone = crate::alone();
    let (seen, _sees) = std::sync::mpsc::channel();
    let run = |config: Config| strict_app::run(config, seen.clone());
    let missing = run(Config::new()).expect("the app starts").settings.all_missing();
    match run(Config::new().strict(true)) {
        Ok(report) => assert!(missing.is_empty() && report.settings.all_missing().is_empty(), "{missing:?}"),
        Err(StartError::Strict(refused)) => {
            assert!(*refused == *missing.join("\n") && !missing.is_empty(), "{missing:?}")
        }
        Err(error) => panic!("{error}"),
    }
    if !privileges::real_time() {
        assert!(!missing.is_empty());
        skip(Need::RealTime, "`strict` with every setting granted");
    }
}

/// A separate app for the test that runs in this process.
#[punctual::app(main = false)]
mod strict_app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context, _: std::sync::mpsc::Sender<super::Seen>) -> (Shared, Local) {
        punctual::shutdown();
        (Shared {}, Local {})
    }

    #[task(priority = 1)]
    fn nothing(_: nothing::Context) {}
}

#[test]
fn names_invalid_environment_variables() {
    let cases = [
        ("PUNCTUAL_CPU", "999", "there is no CPU 999 for this app; choose one of "),
        ("PUNCTUAL_CPU", "-1", "PUNCTUAL_CPU=-1 is invalid; set it to the number of a CPU"),
        ("PUNCTUAL_CPU", "first", "PUNCTUAL_CPU=first is invalid; set it to the number of a CPU"),
        ("PUNCTUAL_CPU", "", "PUNCTUAL_CPU= is invalid"),
        ("PUNCTUAL_CPU", "99999999999999999999", "PUNCTUAL_CPU=99999999999999999999 is invalid"),
        ("PUNCTUAL_PORT", "windows", "PUNCTUAL_PORT=windows is invalid; set it to linux or virtual"),
        ("PUNCTUAL_WAKE_LATENCY", "-1", "PUNCTUAL_WAKE_LATENCY=-1 is invalid; set it to a number of µs"),
        ("PUNCTUAL_GUARD", "1", "PUNCTUAL_GUARD=1 is invalid; set it to "),
        ("PUNCTUAL_STRICT", "yes", "PUNCTUAL_STRICT=yes is invalid; set it to 1 or 0"),
    ];
    for (name, value, words) in cases {
        let mut command = process::program("settings::program");
        command.env(name, value);
        let ended = end(command);
        assert_eq!(ended.code, 2, "{name}={value}: {}", ended.output);
        contains(&ended, &[words, name]);
        assert!(!ended.output.contains("INIT"), "nothing of it runs:\n{}", ended.output);
    }
}

#[test]
fn leaves_calling_thread_and_memory_unchanged() {
    let program = process::program("settings::program_that_looks");
    for command in [privileges::unprivileged(&program), program] {
        let ended = end(command);
        assert_eq!(ended.code, 0, "{}", ended.output);
        contains(&ended, &["AS BEFORE", "HELPERS ARE ORDINARY"]);
    }
}

/// With every C library: musl's own scheduler calls return `ENOSYS`.
#[test]
fn workers_get_priority_of_their_level() {
    if !privileges::real_time() {
        return skip(Need::RealTime, "priorities of workers");
    }
    let ended = end(process::program("settings::program_that_looks"));
    contains(&ended, &["init AT SCHED_OTHER 0", "idle AT SCHED_OTHER 0", "task AT SCHED_FIFO 53"]);
}

#[test]
#[ignore = "a program that the other tests run"]
fn program() {
    let (seen, _sees) = std::sync::mpsc::channel();
    process::exit(punctual::export::main(|config| app::run(config, seen)));
}

#[test]
#[ignore = "a program that the other tests run"]
fn program_that_looks() {
    let (seen, sees) = std::sync::mpsc::channel();
    let state = || (cpus(), policy(), memory_is_locked());
    let before = state();
    assert!(!before.2, "nothing has locked memory yet");

    let report = app::run(Config::new(), seen.clone()).expect("the app starts");
    assert_eq!(state(), before, "after a run");
    let idle = report.settings.threads.last().expect("idle is a thread of the app");
    assert_eq!(idle.thread, "idle");
    // All were on one CPU, unless a listed setting is missing.
    let cpu: usize = idle.cpus.parse().expect("idle is on one CPU");
    for thread in &report.settings.threads {
        assert!(thread.cpus == idle.cpus || !thread.missing.is_empty(), "{thread:?}");
    }

    let nowhere = app::run(Config::new().cpu(999), seen.clone());
    assert!(matches!(nowhere, Err(StartError::Cpu { cpu: 999, .. })));
    assert_eq!(state(), before, "after a run that did not start");
    let strict = app::run(Config::new().strict(true), seen);
    assert_eq!(state(), before, "after a strict run: {:?}", strict.map(|report| report.outcome));
    println!("AS BEFORE");

    let elsewhere = before.0.count() > 1;
    let seen: Vec<Seen> = sees.iter().collect();
    assert!(["init", "idle", "task"].iter().all(|by| seen.iter().any(|seen| seen.by == *by)), "{seen:?}");
    for seen in seen {
        println!("{} AT {} {}", seen.by, seen.own.0, seen.own.1);
        assert_eq!((seen.helper.0, seen.plain), (libc::SCHED_OTHER, libc::SCHED_OTHER), "{seen:?}");
        assert!(!(elsewhere && seen.helper.1.is_set(cpu)), "a helper on the app's CPU {cpu}: {seen:?}");
    }
    println!("HELPERS ARE ORDINARY");

    // Memory that this process locked itself stays locked. SAFETY: the call takes no pointers.
    if unsafe { libc::mlockall(libc::MCL_CURRENT) } == 0 {
        let (seen, _sees) = std::sync::mpsc::channel();
        app::run(Config::new(), seen).expect("the app starts");
        assert!(memory_is_locked());
    }
}

/// A thread that lost its policy in the middle of a run is reported.
mod changed {
    use punctual::Config;

    #[punctual::app(main = false)]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        /// Periodic: its own thread runs it, also without privileges.
        #[task(priority = 2, period = 1.millis())]
        fn demoted(_: demoted::Context) {
            // As another process does by `chrt`; the flag, once set, can be reset by root only.
            punctual_process::scheduling::set_policy(libc::SCHED_BATCH | libc::SCHED_RESET_ON_FORK, 0)
                .expect("it needs no privileges");
            punctual::shutdown();
        }

        /// Declared for its thread, which keeps its policy.
        #[task(priority = 1)]
        fn unchanged(_: unchanged::Context) {}
    }

    #[test]
    fn reports_settings_that_changed_during_run() {
        let report = app::run(Config::new()).expect("nothing can be missing");
        let changed: Vec<_> =
            report.settings.notes.iter().filter(|note| note.contains("changed during the run")).collect();
        let [note] = changed[..] else { panic!("{report}") };
        assert!(note.contains("level 2 ") && note.contains(" to SCHED_BATCH 0 on CPUs "), "{note}");
    }
}

/// A program without the guard's allocator gets a warning that allocations are not detected.
#[cfg(feature = "guard")]
mod guard_without_allocator {
    use punctual::config::{Config, Guard};

    #[punctual::app(main = false)]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            pushes::spawn().expect("it has room");
            (Shared {}, Local {})
        }

        #[task(priority = 1)]
        fn pushes(_: pushes::Context) {
            drop(std::hint::black_box(vec![1_u8]));
        }
    }

    #[test]
    fn reports_unobserved_allocations() {
        let run =
            |guard| app::run(Config::new().virtual_time().guard(guard)).expect("nothing can be missing");
        let report = run(Guard::Report);
        assert!(
            report.settings.notes.iter().any(|note| note.contains("does not see allocations")),
            "{report}"
        );
        assert!(report.tasks[0].findings.is_empty(), "{report}");
        assert!(run(Guard::Off).settings.notes.is_empty());
    }
}
