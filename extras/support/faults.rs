//! Faults of a transport while an app with a task of 1 kHz publishes: the app reports and counts
//! each of them, and nothing else happens to it.

use std::fs;
use std::io::{BufRead, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use punctual::Config;
use punctual_bridge::messages::Vector3;
use punctual_bridge::{Incoming, Topic};
use punctual_process::scheduling;
use test_skip::{Need, skip};

use super::threads;
use super::transport::{Process, signal, worker_of};

/// The interval and the number of attempts to exhaust the memory of a transport.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
const MAX_ATTEMPTS: u32 = 600;

/// The variable with the name of the app.
const APP: &str = "PUNCTUAL_TEST_APP";

static NUMBERS: Topic<Vector3, 4096> = Topic::new("/numbers").hz(1000);
static WANTED: Incoming<Vector3> = Incoming::new("/wanted", Vector3 { x: 0.0, y: 0.0, z: 0.0 });
static PUBLISHES: AtomicBool = AtomicBool::new(false);
/// The number of published messages.
static PUBLISHED: AtomicU64 = AtomicU64::new(0);
/// Jobs since the last published message.
static PAUSED: AtomicU64 = AtomicU64::new(0);

#[punctual::app(main = false)]
mod controller {
    use std::sync::atomic::Ordering;

    use punctual_bridge::messages::Vector3;
    use punctual_bridge::{Bridge, IncomingReader, Publisher, Running, TransportServer};

    use super::{NUMBERS, PAUSED, PUBLISHED, PUBLISHES, WANTED};

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        numbers: Publisher<Vector3, 4096>,
        wanted: IncomingReader<Vector3>,
        bridge: Option<Running>,
    }

    #[init]
    fn init(_: init::Context, name: String) -> (Shared, Local) {
        let server = TransportServer::new(&name).subscribe(WANTED.subscribe().expect("it is free"));
        // Only the messages of the task are counted.
        let bridge = Bridge::new().topic(&NUMBERS).diagnostics(false).transports(server).start();
        let bridge = bridge.expect("it can start");
        let numbers = NUMBERS.publisher().expect("it is free");
        (Shared {}, Local { numbers, wanted: WANTED.reader().expect("it is free"), bridge: Some(bridge) })
    }

    #[task(period = 1.millis(), priority = 1, local = [numbers, wanted])]
    fn control(cx: control::Context) {
        let wanted = cx.local.wanted.read().message;
        if PUBLISHES.load(Ordering::Acquire) {
            cx.local.numbers.publish(cx.released, wanted);
            PUBLISHED.fetch_add(1, Ordering::Release);
            PAUSED.store(0, Ordering::Release);
        } else {
            PAUSED.fetch_add(1, Ordering::Release);
        }
    }

    #[shutdown(local = [bridge])]
    fn shutdown(cx: shutdown::Context) {
        let report = cx.local.bridge.take().expect("it is finished once").finish();
        let topic = &report.topics[0];
        eprintln!("+ended {} {}", topic.taken, topic.lost);
    }
}

/// The process of the app: publishes between the lines `publish` and `pause` of its input, at whose
/// end it ends. Does nothing in the first process.
pub(crate) fn app() {
    let Ok(name) = std::env::var(APP) else { return };
    thread::spawn(|| {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            PAUSED.store(0, Ordering::Release);
            PUBLISHES.store(line == "publish", Ordering::Release);
            // Two jobs have begun after the last message.
            while line == "pause" && PAUSED.load(Ordering::Acquire) < 2 {
                thread::sleep(Duration::from_millis(1));
            }
            eprintln!("+{line} {}", PUBLISHED.load(Ordering::Acquire));
        }
        punctual::shutdown();
    });
    controller::run(Config::from_env(), name).expect("nothing is required");
}

/// Returns the numbers in a text.
fn numbers(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

/// Returns the resident memory of a process, in KiB.
fn memory_kib(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("it has memory");
    numbers(line)[0]
}

/// Starts a transport as a real-time thread would, if permitted.
fn start_from_real_time(command: &mut Command) -> Process {
    thread::scope(|scope| {
        let start = || {
            if scheduling::set_policy(libc::SCHED_FIFO, 1).is_err() {
                skip(Need::RealTime, "a transport does not inherit a real-time priority");
            }
            Process::start_transport(command)
        };
        scope.spawn(start).join().expect("it starts")
    })
}

/// A transport, and the faults that it can have.
pub(crate) struct Case<'a> {
    /// Returns its command, for an app of this name.
    pub(crate) command: &'a dyn Fn(&str) -> Command,
    /// `true` if it restarts after SIGSTOP and SIGCONT.
    pub(crate) restarts_after_stop: bool,
    /// Sends it junk.
    pub(crate) junk: &'a dyn Fn(),
    /// The memory by which its worker may grow because of the junk, in KiB, if limited.
    pub(crate) max_growth_kib: Option<u64>,
    /// Makes its network library exceed the limit of its memory.
    pub(crate) exhaust: Option<&'a dyn Fn()>,
}

impl<'a> Case<'a> {
    /// A transport that continues after SIGCONT, without limits of its memory to check.
    pub(crate) fn new(command: &'a dyn Fn(&str) -> Command, junk: &'a dyn Fn()) -> Self {
        Self { command, restarts_after_stop: false, junk, max_growth_kib: None, exhaust: None }
    }
}

/// Kills, stops and attacks the transport; `app` is the ignored test that calls [`app`].
pub(crate) fn check(app: &str, case: &Case<'_>) {
    let name = format!("faults-{}", std::process::id());
    let this = std::env::current_exe().expect("a program knows where it is");
    let mut controller = Command::new(this);
    controller.args(["--ignored", "--exact", "--nocapture", app]).env(APP, &name).stdin(Stdio::piped());
    let mut controller = Process::start(&mut controller);
    let mut stdin = controller.child.stdin.take().expect("it is piped");
    let transport = start_from_real_time(&mut (case.command)(&name));
    let worker = || worker_of(transport.child.id()).expect("it runs");
    let real_time = threads::of_process(worker().cast_unsigned());
    let real_time: Vec<_> = real_time.into_iter().filter(|thread| thread.policy != "0").collect();
    assert_eq!(real_time, [], "all threads of the worker are ordinary");
    let mut send = |line: &str| {
        writeln!(stdin, "{line}").expect("it reads");
        numbers(&controller.wait_for(&format!("+{line}")))[0]
    };
    send("publish");

    let wait_for_return = || {
        transport.wait_for("carries the topics of");
        controller.wait_for("has detached");
    };
    let wait_for_restart = |cause: &str| {
        transport.wait_for(&format!("killed by {cause}; restarts"));
        wait_for_return();
    };
    signal(worker(), libc::SIGKILL);
    wait_for_restart("SIGKILL");

    signal(worker(), libc::SIGSTOP);
    controller.wait_for("has not responded for 0.5 s");
    signal(worker(), libc::SIGCONT);
    if case.restarts_after_stop {
        wait_for_restart("SIGABRT");
    } else {
        controller.wait_for("continues after");
    }

    let before_kib = memory_kib(controller.child.id());
    let before = worker();
    let worker_before_kib = memory_kib(before.cast_unsigned());
    (case.junk)();
    if let Some(max_kib) = case.max_growth_kib {
        assert_eq!(worker(), before, "the worker survives");
        let growth_kib = memory_kib(before.cast_unsigned()).saturating_sub(worker_before_kib);
        assert!(growth_kib < max_kib, "the worker's memory has grown by {growth_kib} KiB");
    }
    if let Some(exhaust) = case.exhaust {
        // The kernel drops datagrams while the transport processes the junk.
        let is_killed = (0..MAX_ATTEMPTS).any(|_| {
            exhaust();
            transport.find("killed by SIGABRT; restarts", RETRY_INTERVAL).is_some()
        });
        assert!(is_killed, "the transport survives {MAX_ATTEMPTS} attempts");
        wait_for_return();
    }
    let growth_kib = memory_kib(controller.child.id()).saturating_sub(before_kib);
    assert!(growth_kib < 4096, "the app's memory has grown by {growth_kib} KiB");

    let published = send("pause");
    signal(worker(), libc::SIGKILL);
    // All messages have been published after the transport had attached.
    let detached = controller.wait_for("has detached");
    let counts = numbers(detached.split_once("detached: ").expect("counts follow").1);
    let unread = counts[counts.len() - 1];
    assert_eq!(counts[0] + counts[1] + unread, published, "taken, lost and unread messages: {detached}");

    transport.wait_for("carries the topics of");
    drop(stdin);
    let ended = numbers(&controller.wait_for("+ended"));
    assert_eq!(ended, [published, 0], "the app has carried everything");
    assert!(controller.status().success());
    assert!(transport.status().success(), "it ends with the app");
}
