//! Jobs that each perform one forbidden operation.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use log::{LevelFilter, Log, Metadata, Record};
use punctual::config::Guard;

use super::{config, each, has_line, process};

/// Operation of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    Nothing,
    Push,
    Print,
    Contend,
    Sleep,
    Log,
    Free,
    Spawn,
    Open,
}

const ALL: [Wrong; 9] = [
    Wrong::Nothing,
    Wrong::Push,
    Wrong::Print,
    Wrong::Contend,
    Wrong::Sleep,
    Wrong::Log,
    Wrong::Free,
    Wrong::Spawn,
    Wrong::Open,
];

impl Wrong {
    /// Performs it.
    fn make(self, numbers: &mut Vec<u64>) {
        match self {
            // A permitted call: an error only if every system call counted.
            Self::Nothing => drop(std::process::id()),
            Self::Push => push(numbers),
            Self::Print => print(),
            Self::Contend => contend(),
            Self::Sleep => sleep(),
            Self::Log => log(),
            Self::Free => free(numbers),
            Self::Spawn => spawn(),
            Self::Open => open(),
        }
    }
}

#[inline(never)]
fn push(numbers: &mut Vec<u64>) {
    numbers.push(1);
}

#[inline(never)]
fn free(numbers: &mut Vec<u64>) {
    drop(std::mem::replace(numbers, const { Vec::new() }));
}

#[inline(never)]
fn print() {
    println!("printed by the job");
}

#[inline(never)]
fn sleep() {
    std::thread::sleep(Duration::from_nanos(1));
}

#[inline(never)]
fn log() {
    log::info!("logged by the job");
}

#[inline(never)]
fn spawn() {
    std::thread::spawn(|| println!("printed by a thread of the job")).join().expect("it does not panic");
}

#[inline(never)]
fn open() {
    // SAFETY: the path is a C string.
    let opened = unsafe { libc::open(c"/there is no such file".as_ptr(), libc::O_RDONLY) };
    assert_eq!(opened, -1, "the call has its result");
}

static CONTENDED: Mutex<()> = Mutex::new(());
/// The thread of the job that waits for the lock, set just before it does.
static WAITS: AtomicI32 = AtomicI32::new(0);
static HELD: AtomicBool = AtomicBool::new(false);

/// Waits for a lock that is not released before this thread sleeps.
#[inline(never)]
fn contend() {
    // SAFETY: the call takes no pointers.
    WAITS.store(unsafe { libc::gettid() }, Ordering::Release);
    drop(CONTENDED.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Holds the lock until a job waits for it.
fn hold() {
    std::thread::spawn(|| {
        let lock = CONTENDED.lock().unwrap_or_else(PoisonError::into_inner);
        HELD.store(true, Ordering::Release);
        let sleeps = |thread: i32| {
            let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap_or_default();
            stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('S'))
        };
        loop {
            match WAITS.load(Ordering::Acquire) {
                0 => std::thread::sleep(Duration::from_millis(1)),
                thread if sleeps(thread) => break,
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        drop(lock);
    });
    while !HELD.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Writes to standard error, like many loggers.
struct Writing;

impl Log for Writing {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        // One allocation, and one write.
        let line = format!("LOGGED {}\n", record.args());
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    fn flush(&self) {}
}

#[punctual::app(main = false)]
mod app {
    use super::Wrong;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        wrong: Wrong,
        numbers: Vec<u64>,
    }

    #[init]
    fn init(_: init::Context, wrong: Wrong) -> (Shared, Local) {
        let numbers = if wrong == Wrong::Free { vec![1] } else { Vec::new() };
        culprit::spawn().expect("it has room");
        bystander::spawn().expect("it has room");
        (Shared {}, Local { wrong, numbers })
    }

    #[task(priority = 2, local = [wrong, numbers])]
    fn culprit(cx: culprit::Context) {
        cx.local.wrong.make(cx.local.numbers);
    }

    #[task(priority = 1)]
    fn bystander(_: bystander::Context) {
        punctual::shutdown();
    }
}

#[test]
#[ignore = "a program of the tests below"]
fn program() {
    let wrong = process::chosen("CASE", ALL);
    let guard = match std::env::var("STOP") {
        Ok(_) => Guard::Stop,
        Err(_) => Guard::Report,
    };
    log::set_logger(&Writing).expect("it is the only one");
    log::set_max_level(LevelFilter::Info);
    if wrong == Wrong::Contend {
        hold();
    }
    let report = app::run(config(guard), wrong).expect("nothing can be missing");
    println!("{report}");
    let calls = |name: &str| {
        let findings = &report.task(name).expect("there is such a task").findings;
        findings.iter().map(|found| format!("{}*{}", found.call, found.count)).collect::<Vec<_>>()
    };
    println!("FOUND {:?} {:?}", calls("culprit"), calls("bystander"));
    assert!(report.tasks.iter().flat_map(|task| &task.findings).all(|found| !found.stack.is_empty()));
    process::exit(report.exit_code().into());
}

/// Checks the reported calls of `wrong`, the function that contains them, and further frames of the
/// stack.
#[track_caller]
fn finds(wrong: Wrong, calls: &[&str], function: &str, besides: &[&str]) {
    each("wrong::program", &format!("{wrong:?}"), |ended, named| {
        assert_eq!(ended.code, 0, "{}", ended.output);
        for call in calls {
            let words = [&format!("guard: culprit: {call}"), " in its jobs, first here:"];
            assert!(has_line(ended, &words), "{wrong:?}: no {call}:\n{}", ended.output);
        }
        assert!(has_line(ended, &["FOUND", "] []"]), "the other task did nothing:\n{}", ended.output);
        if named {
            let line = |words: &[&str]| assert!(has_line(ended, words), "{words:?}:\n{}", ended.output);
            line(&["    ", &format!("{function} at "), "tests/guard/wrong.rs:"]);
            line(&["    ", "culprit at ", "tests/guard/wrong.rs:"]);
            besides.iter().for_each(|frame| line(&["    ", frame]));
            for ours in ["punctual::task::", "punctual::observe::guard", "Body>::call"] {
                assert!(!ended.output.contains(ours), "{ours} is no part of it:\n{}", ended.output);
            }
        }
    });
}

#[test]
fn reports_nothing_for_clean_job() {
    each("wrong::program", "Nothing", |ended, _| {
        assert_eq!(ended.code, 0, "{}", ended.output);
        assert!(has_line(ended, &["FOUND [] []"]) && !ended.output.contains("guard: "), "{}", ended.output);
    });
}

#[test]
fn detects_allocating_push() {
    finds(Wrong::Push, &["allocation 1 time"], "push", &["alloc::vec::Vec"]);
}

#[test]
fn detects_freed_vector() {
    finds(Wrong::Free, &["deallocation 1 time"], "free", &[]);
}

#[test]
fn detects_printed_line() {
    finds(Wrong::Print, &["write "], "print", &["std::io::stdio"]);
}

#[test]
fn detects_held_mutex() {
    finds(Wrong::Contend, &["futex "], "contend", &["std::sys::sync::mutex", "lock"]);
}

#[test]
fn detects_sleep() {
    finds(Wrong::Sleep, &["clock_nanosleep 1 time"], "sleep", &["std::thread"]);
}

#[test]
fn detects_logger_that_writes() {
    finds(Wrong::Log, &["allocation ", "write 1 time", "deallocation "], "log", &["log::__private_api"]);
}

#[test]
fn detects_thread_start_but_not_its_work() {
    each("wrong::program", "Spawn", |ended, _| {
        assert_eq!(ended.code, 0, "{}", ended.output);
        assert!(has_line(ended, &["printed by a thread of the job"]), "{}", ended.output);
        assert!(has_line(ended, &["FOUND", "allocation", "] []"]), "{}", ended.output);
        assert!(!has_line(ended, &["FOUND", "write"]), "{}", ended.output);
    });
}

#[test]
fn detects_file_open() {
    finds(Wrong::Open, &["open"], "open", &[]);
}

#[test]
fn stops_app_on_request() {
    for time in super::TIMES {
        let mut program = process::program("wrong::program");
        program.env("CASE", "Push").env("STOP", "1").env("PUNCTUAL_PORT", time);
        super::privileges::no_runaways(&mut program);
        let ended = process::start(program).end();
        assert_eq!(ended.code, 1, "{}", ended.output);
        assert!(has_line(&ended, &["the guard found `culprit` allocating or blocking"]), "{}", ended.output);
        assert!(has_line(&ended, &["guard: culprit: allocation 1 time"]), "{}", ended.output);
    }
}

/// A job that runs on top of another is distinct from it.
mod nested {
    use punctual::config::{Config, Guard};

    #[punctual::app(main = false)]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            above: Vec<u64>,
            below: Vec<u64>,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            low::spawn().expect("it has room");
            (Shared {}, Local { above: Vec::new(), below: Vec::new() })
        }

        #[task(priority = 1, local = [below])]
        fn low(cx: low::Context) {
            // Runs immediately.
            high::spawn().expect("it has room");
            clean::spawn().expect("it has room");
            cx.local.below.extend([1, 2]);
            punctual::shutdown();
        }

        #[task(priority = 2, local = [above])]
        fn high(cx: high::Context) {
            cx.local.above.push(1);
            drop(std::mem::take(cx.local.above));
        }

        #[task(priority = 3)]
        fn clean(_: clean::Context) {}
    }

    #[test]
    fn attributes_finding_to_running_job() {
        let report =
            app::run(Config::new().virtual_time().guard(Guard::Report)).expect("nothing can be missing");
        let calls = |name: &str| {
            let findings = &report.task(name).expect("there is such a task").findings;
            findings.iter().map(|found| (found.call.clone(), found.count)).collect::<Vec<_>>()
        };
        assert_eq!(calls("low"), [("allocation".to_owned(), 1)], "{report}");
        assert_eq!(calls("high"), [("allocation".to_owned(), 1), ("deallocation".to_owned(), 1)], "{report}");
        assert_eq!(calls("clean"), []);
        // The next run is independent, and without a guard nothing is reported.
        let report = app::run(Config::new().virtual_time()).expect("nothing can be missing");
        assert!(report.tasks.iter().all(|task| task.findings.is_empty()), "{report}");
    }
}
