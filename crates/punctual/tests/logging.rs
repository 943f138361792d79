//! `punctual::log!`: another thread formats and writes the records of jobs, in order, and reports
//! losses.

#[path = "support/allocator.rs"]
mod allocator;

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use allocator::Telling;
use log::{Level, LevelFilter, Log, Metadata, Record};
use punctual::Config;

thread_local! {
    /// Number of allocations and frees by this thread.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
}

#[global_allocator]
static ALLOCATOR: Telling = Telling(count);

/// Records that the logger received.
#[derive(Debug, Clone)]
struct Output {
    text: String,
    level: Level,
    target: String,
    at: Option<u64>,
    thread: String,
}

/// The logger of this program.
struct Logger(Mutex<Vec<Output>>);

static LOGGER: Logger = Logger(Mutex::new(Vec::new()));

impl Log for Logger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let text = record.args().to_string();
        let at = record.key_values().get("at_ns".into()).and_then(|at| at.to_u64());
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        assert!((text.as_str(), thread.as_str()) != ("panic", "punctual-log"), "a logger that panics");
        let printed = Output { text, level: record.level(), target: record.target().into(), at, thread };
        self.0.lock().unwrap().push(printed);
    }

    fn flush(&self) {}
}

/// Runs one app at a time, with this logger, and returns the records.
fn printed(run: impl FnOnce()) -> Vec<Output> {
    let _one = test_skip::alone();
    let _ = log::set_logger(&LOGGER);
    log::set_max_level(LevelFilter::Info);
    LOGGER.0.lock().unwrap().clear();
    run();
    std::mem::take(&mut *LOGGER.0.lock().unwrap())
}

#[punctual::app(main = false)]
mod app {
    use std::sync::atomic::Ordering;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        count: u32,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local { count: 0 })
    }

    #[task(priority = 2, period = 1.millis(), local = [count])]
    fn beat(cx: beat::Context) {
        let (number, name) = (*cx.local.count, "beat");
        *cx.local.count += 1;
        let before = super::ALLOCATIONS.get();
        punctual::log!(Info, "{name} {}, {:.1}", number, 0.25 * f64::from(number));
        punctual::log!(Debug, "{}", super::never());
        let allocated = super::ALLOCATIONS.get() - before;
        assert!(allocated == 0 || super::IS_VIRTUAL.load(Ordering::Relaxed), "a job has allocated");
        if number == 9 {
            burst::spawn().expect("nothing else spawns it");
        }
    }

    #[task(priority = 1)]
    fn burst(_: burst::Context) {
        punctual::log!(Error, "panic");
        for number in 0..super::BURST {
            punctual::log!(Warn, "burst {number}");
        }
        punctual::shutdown();
    }
}

/// In virtual time records are formatted at once.
static IS_VIRTUAL: AtomicBool = AtomicBool::new(false);

fn never() -> u32 {
    unreachable!("the level is off")
}

/// More than fits, unless the helper is very fast.
const BURST: usize = 3_000;

/// Checks the records of the app, in this order, and returns the number of lost ones.
fn check(printed: &[Output]) -> usize {
    let texts =
        |level| printed.iter().filter(move |printed| printed.level == level && printed.target != "punctual");
    let beats: Vec<&str> = texts(Level::Info).map(|printed| printed.text.as_str()).take(10).collect();
    let expected: Vec<String> =
        (0..10).map(|number| format!("beat {number}, {:.1}", 0.25 * f64::from(number))).collect();
    assert_eq!(beats, expected);
    let bursts: Vec<usize> = texts(Level::Warn)
        .map(|printed| printed.text.strip_prefix("burst ").unwrap().parse().unwrap())
        .collect();
    assert!(bursts.is_sorted() && bursts.len() <= BURST);
    let times: Vec<u64> = texts(Level::Info).map(|printed| printed.at.expect("it says when")).collect();
    assert!(times.is_sorted() && times[0] < times[9], "{times:?}");
    BURST - bursts.len()
}

#[test]
fn helper_writes_log_records_and_losses() {
    let printed = printed(|| drop(app::run(Config::new()).expect("it can be started")));
    let lost = check(&printed);
    let about_lost = |printed: &&Output| {
        printed.target == "punctual" && printed.text.contains("records of jobs were lost")
    };
    let reported = printed.iter().filter(about_lost);
    let reported: usize =
        reported.map(|printed| printed.text.split(' ').next().unwrap().parse::<usize>().unwrap()).sum();
    assert_eq!(reported, lost);
    let by_jobs = printed.iter().filter(|printed| printed.thread.contains("level")).count();
    assert_eq!(by_jobs, 0, "the logger was called by threads of jobs");
}

#[test]
fn virtual_time_writes_at_once_and_loses_nothing() {
    let printed = printed(|| {
        IS_VIRTUAL.store(true, Ordering::Relaxed);
        let ended = app::run(Config::new().virtual_time());
        IS_VIRTUAL.store(false, Ordering::Relaxed);
        drop(ended.expect("it can be started"));
    });
    assert_eq!(check(&printed), 0);
    let last = printed.iter().rfind(|printed| printed.level == Level::Info).unwrap();
    assert!(last.at.is_some_and(|at| at % 1_000_000 == 0), "virtual time: {last:?}");
}

#[test]
fn other_threads_write_directly() {
    let printed = printed(|| {
        punctual::log!(Info, "{} and {}", 1, 2,);
        punctual::log!(Info, "none");
        assert_eq!(LOGGER.0.lock().unwrap().len(), 2);
    });
    assert_eq!(printed[0].text, "1 and 2");
    assert_eq!(printed[0].target, "logging");
}
