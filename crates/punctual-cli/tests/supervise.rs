//! `punctual supervise` with misbehaving apps. Each ends as declared, and its stack is recorded.

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use punctual::persistent::Persistent;
use punctual_process::child::{BoundedChild, BoundedCommand, TEST_LIMIT};
use rustix::time::{ClockId, clock_gettime};

use self::support::{Scratch, punctual, text};
use test_skip::{Need, skip};

/// Environment variable with the app's misbehavior.
const MISTAKE: &str = "MISTAKE";
/// Environment variable with a control group with little memory, and its limit in bytes.
const GROUP: &str = "GROUP_OF_MEMORY";
const LIMIT: usize = 64 << 20;
/// Environment variable with a file that ends the endless loop.
const END: &str = "END_OF_LOOP";

#[punctual::app(main = false)]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        match std::env::var(super::MISTAKE).as_deref() {
            Ok("loop and be killed") => killed::spawn().unwrap(),
            Ok("loop and be stopped") => stopped::spawn().unwrap(),
            Ok("loop and be reported") => reported::spawn().unwrap(),
            Ok("nothing") => short::spawn().unwrap(),
            Ok("be displaced") => displaced::spawn().unwrap(),
            Ok("sleep") => sleeps::spawn().unwrap(),
            Ok("call") => caller::spawn().unwrap(),
            Ok("count and be killed") => counted::spawn().unwrap(),
            _ => other::spawn().unwrap(),
        }
        (Shared {}, Local {})
    }

    #[task(priority = 2, budget = 100.millis(), on_budget = kill)]
    fn killed(_: killed::Context) {
        super::loops();
    }

    #[task(priority = 2, budget = 100.millis(), on_budget = stop)]
    fn stopped(_: stopped::Context) {
        super::loops();
    }

    #[task(priority = 2, budget = 100.millis())]
    fn reported(_: reported::Context) {
        super::loops();
        punctual::shutdown();
    }

    /// In progress for longer than its budget, most of it without the CPU.
    #[task(priority = 1, budget = 200.millis(), on_budget = kill)]
    fn displaced(_: displaced::Context) {
        super::is_displaced(std::time::Duration::from_millis(300));
        punctual::shutdown();
    }

    #[allow(deprecated, reason = "a budget does not count the time in which a job sleeps")]
    #[task(priority = 1, budget = 50.millis(), on_budget = kill)]
    fn sleeps(_: sleeps::Context) {
        std::thread::sleep(std::time::Duration::from_millis(200));
        punctual::shutdown();
    }

    /// Its own time is short, that of the jobs that it calls is long.
    #[task(priority = 1, budget = 100.millis(), on_budget = kill)]
    fn caller(_: caller::Context) {
        for _ in 0..4 {
            called::spawn().unwrap();
        }
        punctual::shutdown();
    }

    #[task(priority = 2)]
    fn called(_: called::Context) {
        super::uses_cpu_time(std::time::Duration::from_millis(50));
    }

    #[task(priority = 1, budget = 3600.secs(), on_budget = kill)]
    fn short(_: short::Context) {
        punctual::shutdown();
    }

    #[task(priority = 2)]
    fn counted(_: counted::Context) {
        super::counts();
    }

    #[task(priority = 3)]
    fn other(_: other::Context) {
        super::fails();
    }
}

/// Spins until a file exists, or for a minute.
#[inline(never)]
fn loops() {
    let end = std::env::var_os(END).map(PathBuf::from);
    let begun = std::time::Instant::now();
    while begun.elapsed().as_secs() < 60 && !end.as_ref().is_some_and(|end| end.exists()) {
        std::hint::spin_loop();
    }
}

/// Spins for this time while three other threads compete for the CPU, at a higher priority if
/// permitted.
fn is_displaced(time: Duration) {
    let end = Instant::now() + time;
    let spins = move || {
        while Instant::now() < end {
            std::hint::spin_loop();
        }
    };
    let ready = Arc::new(Barrier::new(4));
    let rivals = [(); 3].map(|()| {
        let ready = Arc::clone(&ready);
        std::thread::spawn(move || {
            // Without the privilege, the thread stays ordinary.
            let _ = punctual_process::scheduling::set_policy(libc::SCHED_FIFO, 90);
            ready.wait();
            spins();
        })
    });
    ready.wait();
    spins();
    for rival in rivals {
        rival.join().unwrap();
    }
}

fn uses_cpu_time(time: Duration) {
    let used = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("it is positive");
    let end = used() + time;
    while used() < end {
        std::hint::spin_loop();
    }
}

#[inline(never)]
fn fails() {
    match std::env::var(MISTAKE).as_deref() {
        // SAFETY: none: the address is not mapped, which the test is about.
        Ok("fault") => unsafe { std::ptr::with_exposed_provenance_mut::<u8>(0x10).write_volatile(1) },
        Ok("abort") => std::process::abort(),
        Ok("overflow") => drop(std::hint::black_box(deeper(1))),
        // SAFETY: the call takes only a number.
        Ok("be stopped by a signal") => unsafe {
            libc::raise(libc::SIGSTOP);
        },
        Ok("use up memory") => uses_up_memory(),
        Ok("be killed") => is_killed(),
        mistake => panic!("{mistake:?} is no mistake of these"),
    }
}

/// Enters the group of the test, which may have less memory.
fn uses_up_memory() {
    let group = PathBuf::from(std::env::var_os(GROUP).expect("the test has made one"));
    fs::write(group.join("cgroup.procs"), "0").expect("the group can be entered");
    let mut memory = vec![0_u8; 8 * LIMIT];
    memory.iter_mut().step_by(4096).for_each(|byte| *byte = std::hint::black_box(1));
    panic!("there is enough memory");
}

/// Is killed twice, and detects it the third time.
fn counts() {
    let (mut persistent, count) = Persistent::open("count", 0_u32).expect("the supervisor has memory");
    println!("handed over: {count}");
    for count in count + 1..=100 * (count / 100 + 1) {
        persistent.store(count);
    }
    if count < 200 {
        is_killed();
    }
    punctual::shutdown();
}

fn is_killed() {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
}

#[inline(never)]
#[allow(unconditional_recursion, reason = "the stack is to overflow")]
fn deeper(depth: u64) -> u64 {
    let block = std::hint::black_box([depth; 64]);
    deeper(depth + 1) + block[0]
}

#[test]
#[ignore = "a program of the other tests"]
fn program() {
    let ended = app::run(punctual::Config::from_env());
    std::process::exit(
        ended.map_or(3, |report| i32::from(report.outcome != punctual::report::Outcome::Shutdown)),
    );
}

fn supervised(scratch: &Scratch, options: &[&str], mistake: &str) -> Command {
    let mut command = punctual(&["supervise"]);
    command.current_dir(&scratch.0);
    command.args(options).arg("--").arg(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "--nocapture", "program"]);
    command.env(MISTAKE, mistake).env_remove("PUNCTUAL_CPU").stdin(Stdio::null());
    command
}

fn output(scratch: &Scratch, options: &[&str], mistake: &str) -> Output {
    supervised(scratch, options, mistake).output_within(TEST_LIMIT).unwrap()
}

/// Returns the recorded stacks, concatenated.
fn stacks(scratch: &Scratch) -> String {
    let files = fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "txt"));
    files.map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// Expects a stack with these functions in it, unless this machine does not permit reading it.
#[track_caller]
fn assert_stack(scratch: &Scratch, functions: &[&str]) {
    let seen = stacks(scratch);
    if seen.contains("unknown: the kernel does not permit tracing") {
        return skip(Need::System("ptrace"), seen);
    }
    for function in functions {
        assert!(seen.contains(function), "{function} is not in\n{seen}");
    }
}

#[test]
fn kills_endless_loop_and_shows_backtrace() {
    let scratch = Scratch::new("supervise-kill");
    let output = output(&scratch, &[], "loop and be killed");
    let stderr_text = text(&output.stderr);
    assert_eq!(output.status.code(), Some(128 + 9), "{stderr_text}");
    assert!(stderr_text.contains("a job of killed, level 2, has used "), "{stderr_text}");
    assert!(
        stderr_text.contains("its budget is 100 ms; the process is killed; its stack: "),
        "{stderr_text}"
    );
    assert_stack(&scratch, &["killed, job 1 of the level", "supervise::loops", "tests/supervise.rs:"]);
}

#[test]
fn writes_kernel_recording_next_to_the_stack() {
    let scratch = Scratch::new("supervise-trace");
    let output = output(&scratch, &["--newest"], "loop and be killed");
    let stderr_text = text(&output.stderr);
    assert_eq!(output.status.code(), Some(128 + 9), "{stderr_text}");
    if let Some(why) = stderr_text.lines().find(|line| line.contains("no trace is kept")) {
        return skip(Need::Tracefs, why);
    }
    let files = fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    let [trace, stack] = &files[..] else { panic!("{files:?}\n{stderr_text}") };
    assert_eq!(trace, &stack.with_extension("dat"), "{stderr_text}");
    // It contains other activity until then, including the thread of the loop.
    let shown = punctual(&["trace", "report", trace.to_str().unwrap()]).output_within(TEST_LIMIT).unwrap();
    let shown = text(&shown.stdout);
    assert!(shown.lines().any(|line| line.starts_with("level 2/")), "{stderr_text}\n{shown}");
}

#[test]
fn keeps_machine_usable_during_endless_loop() {
    let scratch = Scratch::new("supervise-report");
    let end = scratch.file("end");
    let mut command = supervised(&scratch, &[], "loop and be reported");
    let mut child = command.env(END, &end).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let stderr_text = lines
        .by_ref()
        .map_while(Result::ok)
        .find(|line| line.contains("a job of reported, level 2, has used "));
    assert!(stderr_text.is_some_and(|line| line.contains("its budget is 100 ms; its stack: ")));
    // The loop continues. Only a shell that gets a CPU ends it.
    let shell = Command::new("sh").args(["-c", "echo > \"$0\""]).arg(&end).status_within(TEST_LIMIT).unwrap();
    let rest: Vec<_> = lines.map_while(Result::ok).collect();
    assert!(shell.success() && child.status_within(TEST_LIMIT).unwrap().success(), "{rest:#?}");
    assert_stack(&scratch, &["supervise::loops"]);
}

#[test]
fn kills_app_that_ignores_stop() {
    let scratch = Scratch::new("supervise-stop");
    let output = output(&scratch, &["--grace", "200ms"], "loop and be stopped");
    let stderr_text = text(&output.stderr);
    assert_eq!(output.status.code(), Some(128 + 9), "{stderr_text}");
    assert!(stderr_text.contains("; the app is asked to stop; its stack: "), "{stderr_text}");
    assert!(
        stderr_text.contains("kills the process: it did not end after a request to stop"),
        "{stderr_text}"
    );
}

#[test]
fn shows_crash_location() {
    let expected: [(&str, i32, &str, &[&str]); 3] = [
        (
            "fault",
            libc::SIGSEGV,
            "SIGSEGV in a job of other",
            &["SIGSEGV at address 0x10", "supervise::fails"],
        ),
        ("abort", libc::SIGABRT, "SIGABRT in a job of other", &["supervise::fails"]),
        (
            "overflow",
            libc::SIGABRT,
            "SIGSEGV in a job of other",
            &["supervise::deeper", "more than 128 frames"],
        ),
    ];
    for (mistake, signal, what, functions) in expected {
        let scratch = Scratch::new("supervise-crash");
        let output = output(&scratch, &[], mistake);
        let stderr_text = text(&output.stderr);
        assert_eq!(output.status.code(), Some(128 + signal), "{mistake}: {stderr_text}");
        assert!(stderr_text.contains(what), "{mistake}: {stderr_text}");
        assert_stack(&scratch, functions);
    }
}

#[test]
fn kills_stopped_process() {
    let scratch = Scratch::new("supervise-sigstop");
    let output = output(&scratch, &["--stopped", "100ms"], "be stopped by a signal");
    let stderr_text = text(&output.stderr);
    assert_eq!(output.status.code(), Some(128 + 9), "{stderr_text}");
    assert!(stderr_text.contains("the process was stopped by a signal"), "{stderr_text}");
    assert!(
        stderr_text.contains("kills the process: it was stopped by a signal, and not continued in time"),
        "{stderr_text}"
    );
}

/// A group with little memory, which is removed on drop.
struct Group(PathBuf);

impl Group {
    fn new() -> std::io::Result<Self> {
        let cgroup_files =
            [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        let make = |(place, limit): (&str, &str)| {
            let group = Self(PathBuf::from(place).join(format!("punctual-test-{}", std::process::id())));
            fs::create_dir(&group.0)?;
            // A group has this file already, if the controller is available.
            fs::OpenOptions::new().write(true).open(group.0.join(limit))?;
            fs::write(group.0.join(limit), LIMIT.to_string())?;
            Ok(group)
        };
        let [first, second] = cgroup_files.map(make);
        first.or(second)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn reports_out_of_memory_kill() {
    let group = match Group::new() {
        Ok(group) => group,
        Err(why) => return skip(Need::System("cgroups that bound memory"), why),
    };
    let scratch = Scratch::new("supervise-memory");
    let mut command = supervised(&scratch, &[], "use up memory");
    let output = command.env(GROUP, &group.0).output_within(TEST_LIMIT).unwrap();
    let stderr_text = text(&output.stderr);
    assert_eq!(output.status.code(), Some(128 + 9), "{stderr_text}");
    assert!(stderr_text.contains("ended: killed by the kernel, out of memory"), "{stderr_text}");
}

#[test]
fn starts_it_again_as_often_as_it_may() {
    let scratch = Scratch::new("supervise-restart");
    let options = ["--restart", "on-failure", "--attempts", "2", "--pause", "10ms"];
    let output = output(&scratch, &options, "be killed");
    let stderr_text = text(&output.stderr);
    assert_eq!(output.status.code(), Some(128 + 9), "{stderr_text}");
    assert_eq!(stderr_text.matches("started, process").count(), 3, "{stderr_text}");
    assert!(
        stderr_text.contains("restarts in 10.0 ms") && stderr_text.contains("restarts in 20.0 ms"),
        "{stderr_text}"
    );
}

#[test]
fn passes_kept_state_to_the_restarted_app() {
    let scratch = Scratch::new("supervise-kept");
    let options = ["--restart", "on-failure", "--pause", "10ms"];
    let output = output(&scratch, &options, "count and be killed");
    let (printed, stderr_text) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stderr_text}");
    let found: Vec<&str> = printed.lines().filter_map(|line| line.strip_prefix("handed over: ")).collect();
    assert_eq!(found, ["0", "100", "200"], "{stderr_text}");
}

#[test]
fn leaves_app_within_budget_alone() {
    let scratch = Scratch::new("supervise-well");
    let output = output(&scratch, &["--restart", "on-failure"], "nothing");
    let stderr_text = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr_text}");
    assert_eq!(stderr_text.matches("started, process").count(), 1, "{stderr_text}");
    assert!(stacks(&scratch).is_empty());
}

/// Runs a job that keeps its budget of CPU time, checks that the app ends in order, and returns the
/// output.
#[track_caller]
fn keeps_its_budget(mistake: &str) -> String {
    let scratch = Scratch::new(&format!("supervise-{}", mistake.replace(' ', "-")));
    let output = output(&scratch, &[], mistake);
    let stderr_text = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr_text}");
    assert!(stacks(&scratch).is_empty(), "{stderr_text}");
    stderr_text
}

#[test]
fn does_not_kill_preempted_job() {
    let stderr_text = keeps_its_budget("be displaced");
    assert!(stderr_text.contains("a job of displaced, level 1, has had the CPU for "), "{stderr_text}");
    assert!(stderr_text.contains(", within its budget of 200 ms; its thread "), "{stderr_text}");
}

#[test]
fn does_not_kill_job_that_sleeps_longer_than_budget() {
    let stderr_text = keeps_its_budget("sleep");
    assert!(stderr_text.contains("a job of sleeps, level 1, has had the CPU for "), "{stderr_text}");
    assert!(stderr_text.contains(", within its budget of 50.0 ms; its thread waits"), "{stderr_text}");
}

#[test]
fn does_not_charge_called_jobs_to_budget_of_caller() {
    let stderr_text = keeps_its_budget("call");
    assert!(!stderr_text.contains("a job of caller"), "{stderr_text}");
}

#[test]
fn error_names_program_that_cannot_start() {
    let output = punctual(&["supervise", "--", "/no/such/app"]).output_within(TEST_LIMIT).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("cannot run `/no/such/app`: "), "{}", text(&output.stderr));
}
