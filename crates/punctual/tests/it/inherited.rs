//! State that an app inherits from its parent process: a test for each row of the table in
//! `docs/book/src/reference/environment.md`.
#![cfg(feature = "signals")]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::process::Ended;
use crate::{privileges, process};
use punctual::Config;
use punctual_process::scheduling::{self, Scheduling};
use punctual_process::signals;
use rustix::process::Signal;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use test_skip::{Need, skip};

#[punctual::app(main = false)]
mod app {
    use std::thread::ThreadId;
    use std::time::{Duration, Instant};

    use punctual::prelude::*;

    use super::print_state;

    #[shared]
    struct Shared {
        ticks: u32,
        /// The thread of `init` and `idle`.
        #[lock_free]
        main: ThreadId,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        print_state("init");
        (Shared { ticks: 0, main: std::thread::current().id() }, Local {})
    }

    #[task(priority = 2, period = 1.millis(), shared = [ticks, main], local = [is_shown: bool = false])]
    fn tick(mut cx: tick::Context) {
        cx.shared.ticks.lock(|ticks| *ticks += 1);
        // The thread of `idle` may run a job that is due before the worker gets the CPU.
        if !*cx.local.is_shown && std::thread::current().id() != *cx.shared.main {
            *cx.local.is_shown = true;
            print_state("worker");
        }
    }

    #[task(priority = 1)]
    fn inspect(_: inspect::Context) {
        print_state("job");
        punctual::shutdown();
    }

    /// Keeps its CPU busy until enough jobs have run, which it must not delay.
    #[idle(shared = [ticks])]
    fn idle(mut cx: idle::Context) {
        let begun = Instant::now();
        while cx.shared.ticks.lock(|ticks| *ticks) < 100 && begun.elapsed() < Duration::from_secs(10) {
            // Most of the time without a lock, which would delay jobs.
            (0..1_000).for_each(|_| std::hint::spin_loop());
        }
        println!("TICKS {}", cx.shared.ticks.lock(|ticks| *ticks));
        print_state("idle");
        punctual::background::spawn("looks", || print_state("background"))
            .expect("threads can be started")
            .join()
            .expect("looking does not panic");
        std::thread::spawn(|| print_state("thread")).join().expect("looking does not panic");
        println!("READY");
        if std::env::var_os("WAITS").is_none() {
            inspect::spawn().expect("the app is running");
        }
    }

    #[shutdown]
    fn shutdown(_: shutdown::Context) {
        print_state("shutdown");
    }
}

/// Prints a line with the state of the calling thread.
fn print_state(role: &str) {
    let scheduling = Scheduling::current().expect("a thread may read its policy");
    // SAFETY: the calls take numbers; the first concerns the calling thread.
    let (nice, keep_caps) =
        unsafe { (libc::getpriority(libc::PRIO_PROCESS, 0), libc::prctl(libc::PR_GET_KEEPCAPS, 0, 0, 0, 0)) };
    println!(
        "STATE {role}: {} {}, nice {nice}, slack {}, blocked {:?}, umask {}, keep-caps {keep_caps}",
        scheduling.name(),
        scheduling.priority(),
        rustix::thread::current_timer_slack().expect("a thread may read its timer slack"),
        signals::blocked(&[libc::SIGTERM, libc::SIGUSR1, libc::SIGSEGV]),
        umask(),
    );
}

fn umask() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("Umask:\t")).unwrap_or("unknown").to_owned()
}

#[test]
#[ignore = "a program that the other tests run"]
fn program() {
    if std::env::var_os("KEEP_CAPS").is_some() {
        // SAFETY: the call takes numbers.
        unsafe { libc::prctl(libc::PR_SET_KEEPCAPS, 1, 0, 0, 0) };
    }
    match std::env::var("REFUSES").as_deref() {
        Ok("prlimit64") => refuse(libc::SYS_prlimit64),
        Ok("sched_setscheduler") => refuse(libc::SYS_sched_setscheduler),
        _ => {}
    }
    print_state("before");
    let report = app::run(Config::from_env());
    print_state("after");
    match report {
        Ok(report) => println!("{report}"),
        Err(error) => println!("{error}"),
    }
}

/// The program, with the privileges of this process and without any. `set` prepares it between fork
/// and exec, by system calls alone.
fn prepared(set: impl FnMut() -> io::Result<()> + Clone + Send + Sync + 'static) -> [Command; 2] {
    let mut commands = privileges::with_and_without(process::program("inherited::program"));
    for command in &mut commands {
        // SAFETY: the caller's closures make system calls, allocate nothing and take no lock.
        unsafe { command.pre_exec(set.clone()) };
    }
    commands
}

/// The program with the privileges of this process, prepared in the same way; `None` without
/// real-time priorities.
fn real_time(set: impl FnMut() -> io::Result<()> + Clone + Send + Sync + 'static) -> Option<Command> {
    if !privileges::real_time() {
        skip(Need::RealTime, "a policy to inherit");
        return None;
    }
    let [command, _] = prepared(set);
    Some(command)
}

fn end(command: Command) -> Ended {
    let ended = process::start(command).end();
    assert_eq!(ended.code, 0, "{}", ended.output);
    ended
}

/// Ends the program by signals.
fn end_by(mut command: Command, signals: &[Signal]) -> Ended {
    command.env("WAITS", "1");
    let mut running = process::start(command);
    running.wait_for("READY");
    signals.iter().for_each(|&signal| running.signal(signal));
    let ended = running.end();
    assert_eq!(ended.code, 0, "{}", ended.output);
    ended
}

/// Returns the state that a thread has printed.
fn state<'a>(ended: &'a Ended, role: &str) -> &'a str {
    let begin = format!("STATE {role}: ");
    ended
        .output
        .lines()
        .find_map(|line| line.split_once(&begin))
        .map_or_else(|| panic!("{}", ended.output), |it| it.1)
}

const ORDINARY_ROLES: [&str; 5] = ["init", "idle", "background", "thread", "shutdown"];

#[test]
fn drops_inherited_real_time_policy_and_reports_it() {
    for (policy, name) in [(libc::SCHED_FIFO, "SCHED_FIFO"), (libc::SCHED_RR, "SCHED_RR")] {
        let Some(mut command) = real_time(move || scheduling::set_policy(policy, 80)) else { return };
        command.env("PUNCTUAL_STRICT", "1");
        let ended = end(command);
        for role in ORDINARY_ROLES {
            assert!(state(&ended, role).starts_with("SCHED_OTHER 0,"), "{role}: {}", ended.output);
        }
        for role in ["before", "after"] {
            assert!(state(&ended, role).starts_with(&format!("{name} 80,")), "{role}: {}", ended.output);
        }
        assert!(ended.output.contains(&format!("note: the program was started with {name} priority 80")));
        let ticks =
            ended.output.lines().find_map(|line| line.split_once("TICKS ")).expect("idle prints it").1;
        // At FIFO 80, `idle` would leave no CPU time.
        assert!(ticks.parse::<u32>().expect("a number") >= 100, "{ticks} jobs in 10 s: {}", ended.output);
    }
}

#[test]
fn strict_rejects_inherited_policy_that_idle_cannot_drop() {
    let Some(mut command) = real_time(|| scheduling::set_policy(libc::SCHED_FIFO, 80)) else { return };
    command.env("PUNCTUAL_STRICT", "1").env("REFUSES", "sched_setscheduler");
    let ended = end(command);
    let reason = "thread idle: idle keeps the inherited SCHED_FIFO priority 80, and displaces tasks";
    assert!(ended.output.contains("strict: the app does not start"), "{}", ended.output);
    assert!(ended.output.contains(reason) && !ended.output.contains("STATE init"), "{}", ended.output);
}

#[test]
fn respects_and_reports_nice() {
    // A process without privileges cannot lower the value with which the tests were started.
    // SAFETY: the call takes numbers.
    let nice = (unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) } + 7).min(19);
    // SAFETY: the call takes numbers; it concerns the only thread of the child.
    let lower = move || match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    };
    for ended in prepared(lower).map(end) {
        for role in ORDINARY_ROLES {
            assert!(state(&ended, role).contains(&format!("nice {nice},")), "{role}: {}", ended.output);
        }
        let note = format!("note: the program was started with nice {nice}");
        assert!(ended.output.contains(&note), "{}", ended.output);
    }
}

#[test]
fn respects_affinity() {
    let last = (0..CpuSet::MAX_CPU)
        .rev()
        .find(|&cpu| sched_getaffinity(None).is_ok_and(|cpus| cpus.is_set(cpu)))
        .expect("there is a CPU");
    let mut only = CpuSet::new();
    only.set(last);
    for ended in prepared(move || Ok(sched_setaffinity(None, &only)?)).map(end) {
        let row =
            ended.output.lines().find(|line| line.starts_with("level 2 ")).expect("the report lists it");
        assert!(row.split_whitespace().any(|cell| cell == last.to_string()), "{row}");
    }
}

#[test]
fn sets_default_timer_slack_and_restores_it() {
    let [privileged, unprivileged] =
        prepared(|| Ok(rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(700_000_000))?))
            .map(end);
    for ended in [&privileged, &unprivileged] {
        for role in ORDINARY_ROLES {
            assert!(state(ended, role).contains("slack 50000,"), "{role}: {}", ended.output);
        }
        for role in ["before", "after"] {
            assert!(state(ended, role).contains("slack 700000000,"), "{role}: {}", ended.output);
        }
    }
    // The kernel has none for real-time threads.
    assert!(state(&unprivileged, "worker").contains("slack 1,"), "{}", unprivileged.output);
}

#[test]
fn stops_at_sigterm_blocked_by_parent() {
    let block = || {
        signals::block(&[libc::SIGTERM, libc::SIGUSR1, libc::SIGSEGV]);
        Ok(())
    };
    for ended in prepared(block).map(|command| end_by(command, &[Signal::TERM])) {
        assert!(ended.output.contains("stopped by SIGTERM after"), "{}", ended.output);
        // Every thread accepts the signals of its own faults during the run. The mask of the caller
        // is restored.
        for role in ORDINARY_ROLES {
            let retained = format!("blocked [{}, {}]", libc::SIGTERM, libc::SIGUSR1);
            assert!(state(&ended, role).contains(&retained), "{role}: {}", ended.output);
        }
        let all = format!("blocked [{}, {}, {}]", libc::SIGTERM, libc::SIGUSR1, libc::SIGSEGV);
        assert!(state(&ended, "after").contains(&all), "{}", ended.output);
    }
}

#[test]
fn keeps_ignored_sigint_and_reports_it() {
    let ignore = || {
        // SAFETY: ignoring a signal needs no function.
        unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
        Ok(())
    };
    for ended in prepared(ignore).map(|command| end_by(command, &[Signal::INT, Signal::TERM])) {
        assert!(ended.output.contains("stopped by SIGTERM after"), "{}", ended.output);
        // Among others if the test itself was started with signals ignored, as by `nohup`.
        let is_note = |line: &str| {
            line.strip_prefix("note: ignored, as when the program was started: ")
                .is_some_and(|signals| signals.split(", ").any(|signal| signal == "SIGINT"))
        };
        assert!(ended.output.lines().any(is_note), "{}", ended.output);
    }
}

#[test]
fn respects_and_reports_rttime_limit() {
    let limit = format!("note: RLIMIT_RTTIME is {} µs", privileges::RUNAWAY.0);
    for ended in prepared(|| Ok(())).map(end) {
        assert!(ended.output.contains(&limit), "{}", ended.output);
    }
}

#[test]
fn runs_with_zero_file_size_limit_and_reports_it() {
    let profile = std::env::temp_dir().join(format!("punctual-inherited-{}", std::process::id()));
    for mut command in prepared(|| Ok(())) {
        privileges::limit(&mut command, privileges::Resource::Fsize, 0, 0);
        command.env("PUNCTUAL_PROFILE", &profile);
        let ended = end(command);
        let _ = std::fs::remove_file(&profile);
        for words in ["RLIMIT_FSIZE", "File too large"] {
            assert!(ended.output.contains(words), "no `{words}` in:\n{}", ended.output);
        }
    }
}

#[test]
fn leaves_umask_and_keep_caps_alone() {
    let commands = prepared(|| {
        // SAFETY: the call takes a number and cannot fail.
        unsafe { libc::umask(0o027) };
        Ok(())
    });
    for mut command in commands {
        command.env("KEEP_CAPS", "1");
        let ended = end(command);
        for role in ["before", "init", "worker", "job", "idle", "background", "shutdown", "after"] {
            assert!(state(&ended, role).contains("umask 0027, keep-caps 1"), "{role}: {}", ended.output);
        }
    }
}

#[test]
fn survives_refused_prlimit() {
    for mut command in prepared(|| Ok(())) {
        command.env("REFUSES", "prlimit64");
        let ended = end(command);
        assert!(
            ended.output.contains("memory: locked") || ended.output.contains("memory: not locked"),
            "{}",
            ended.output
        );
        assert!(!ended.output.contains("RLIMIT_RTTIME is"), "limits are unknown: {}", ended.output);
    }
}

/// Makes the kernel refuse a system call to the calling thread and those that it starts.
fn refuse(call: libc::c_long) {
    let statement = |code: u32, jf, k| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    let filter = [
        // The number of the system call is the first word of `struct seccomp_data`.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, call as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the kernel copies the program, which is valid and returns on every path.
    let is_refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) != 0
    };
    assert!(!is_refused, "{}", io::Error::last_os_error());
}
