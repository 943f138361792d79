//! The app: a task of 10 kHz that publishes and receives, with a transport as its helper process.

use std::io::{BufRead, Write};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use punctual::background::HelperProcess;
use punctual::{Config, health};
use punctual_bridge::messages::Vector3;
use punctual_bridge::{Incoming, Topic};

/// The period and the deadline of the task, in ns.
const PERIOD_NS: u64 = 100_000;
/// The number of jobs for each message: 1000 messages per second.
const JOBS_PER_MESSAGE: u64 = 10;
/// The length of a slot of time, in ns.
pub(crate) const SLOT_NS: u64 = 500_000_000;
/// The name of the transport that floods the app.
pub(crate) const FLOOD: &str = "flood";
/// An hour.
const SLOTS: usize = 7200;

static NUMBERS: Topic<Vector3, 4096> = Topic::new("/numbers").hz(1000);
static WANTED: Incoming<Vector3> = Incoming::new("/wanted", Vector3 { x: 0.0, y: 0.0, z: 0.0 });
static TRANSPORT: Mutex<Option<HelperProcess>> = Mutex::new(None);
static PUBLISHES: AtomicBool = AtomicBool::new(false);
static PUBLISHED: AtomicU64 = AtomicU64::new(0);
static JOBS: AtomicU64 = AtomicU64::new(0);
/// The maximum response time so far, in ns.
static LONGEST_NS: AtomicU64 = AtomicU64::new(0);
/// The number of the present slot, since the start of the clock.
static SLOT: AtomicU64 = AtomicU64::new(0);
/// The number of jobs in each slot that missed their deadline, or were skipped.
static MISSES: [AtomicU32; SLOTS] = [const { AtomicU32::new(0) }; SLOTS];

#[punctual::app(main = false)]
mod controller {
    use std::sync::atomic::Ordering::Relaxed;

    use punctual::background::{HelperCommand, HelperProcess};
    use punctual_bridge::messages::Vector3;
    use punctual_bridge::{Bridge, IncomingReader, Publisher, Running, TransportServer};

    use super::{
        FLOOD, JOBS, JOBS_PER_MESSAGE, LONGEST_NS, NUMBERS, PERIOD_NS, PUBLISHED, PUBLISHES, SLOT, SLOT_NS,
        TRANSPORT, WANTED, misses_of,
    };

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        numbers: Publisher<Vector3, 4096>,
        wanted: IncomingReader<Vector3>,
        bridge: Option<Running>,
    }

    #[init]
    fn init(_: init::Context, setup: super::Setup) -> (Shared, Local) {
        let server = TransportServer::new(&setup.name).subscribe(WANTED.subscribe().expect("it is free"));
        // Only the messages of the task are counted.
        let bridge = Bridge::new().topic(&NUMBERS).diagnostics(false).transports(server).start();
        let bridge = Some(bridge.expect("it can start"));
        let transport = HelperProcess::start(HelperCommand::new(setup.transport)).expect("it is built");
        *TRANSPORT.lock().expect("it is free") = Some(transport);
        let (numbers, wanted) =
            (NUMBERS.publisher().expect("it is free"), WANTED.reader().expect("it is free"));
        (Shared {}, Local { numbers, wanted, bridge })
    }

    #[task(period = 100.micros(), priority = 1, local = [numbers, wanted, previous_ns: u64 = 0])]
    fn control(cx: control::Context) {
        let wanted = cx.local.wanted.read().message;
        let jobs = JOBS.fetch_add(1, Relaxed);
        if jobs.is_multiple_of(JOBS_PER_MESSAGE) && PUBLISHES.load(Relaxed) {
            cx.local.numbers.publish(cx.released, wanted);
            PUBLISHED.fetch_add(1, Relaxed);
        }
        let released_ns = cx.released.as_ticks();
        let response_ns = punctual::now().as_ticks().saturating_sub(released_ns);
        LONGEST_NS.fetch_max(response_ns, Relaxed);
        let skipped = match std::mem::replace(cx.local.previous_ns, released_ns) {
            0 => 0,
            previous_ns => (released_ns.saturating_sub(previous_ns) / PERIOD_NS).saturating_sub(1),
        };
        let slot = released_ns / SLOT_NS;
        SLOT.store(slot, Relaxed);
        let missed = skipped as u32 + u32::from(response_ns > PERIOD_NS);
        if missed > 0 {
            misses_of(slot).fetch_add(missed, Relaxed);
        }
    }

    #[shutdown(local = [bridge])]
    fn shutdown(cx: shutdown::Context) {
        let transport = TRANSPORT.lock().expect("it is free").take();
        let report = cx.local.bridge.take().expect("it is finished once").finish();
        if let Some(transport) = transport {
            drop(transport);
            let flood = report.transports.iter().find(|transport| transport.name == FLOOD);
            let received = flood.map_or(0, |flood| flood.accepted + flood.rejected + flood.incoming_lost);
            super::print(&format!("+ended {} {} {received}", report.topics[0].taken, report.topics[0].lost));
        }
    }
}

/// The arguments of the app.
pub(crate) struct Setup {
    pub(crate) name: String,
    pub(crate) transport: Command,
}

/// Runs the app on a CPU until the end of its input; each line of the input is a request.
pub(crate) fn run(cpu: usize, setup: Setup) {
    let traffic = format!("transport {}", transport_name(&setup.transport));
    thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            answer(&line, &traffic);
        }
        punctual::shutdown();
    });
    controller::run(Config::from_env().cpu(cpu), setup).expect("nothing is required");
}

/// Returns the misses in a slot of the last hour.
fn misses_of(slot: u64) -> &'static AtomicU32 {
    &MISSES[slot as usize % SLOTS]
}

fn transport_name(command: &Command) -> String {
    let program = command.get_program().to_string_lossy().into_owned();
    program.rsplit("punctual-").next().unwrap_or_default().to_owned()
}

fn answer(request: &str, traffic: &str) {
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let words: Vec<&str> = request.split(' ').collect();
    match words[..] {
        ["publish"] => PUBLISHES.store(true, Ordering::Relaxed),
        ["pause"] => {
            PUBLISHES.store(false, Ordering::Relaxed);
            // The job that has seen the old value ends.
            let begun = count(&JOBS);
            while count(&JOBS) < begun + 2 {
                thread::sleep(Duration::from_millis(1));
            }
        }
        _ => {}
    }
    let answer = match words[..] {
        ["publish" | "pause" | "count"] => {
            let carried = health::current().and_then(|health| {
                let of_transport = health.traffic.into_iter().find(|one| one.name == traffic)?;
                Some((of_transport.carried, of_transport.lost, of_transport.refused))
            });
            let (carried, lost, refused) = carried.unwrap_or_default();
            let (published, jobs) = (count(&PUBLISHED), count(&JOBS));
            format!("{published} {carried} {lost} {refused} {jobs}")
        }
        ["process"] => {
            let transport = TRANSPORT.lock().expect("it is free");
            transport.as_ref().and_then(HelperProcess::process).unwrap_or(0).to_string()
        }
        ["slot"] => SLOT.load(Ordering::Relaxed).to_string(),
        ["longest"] => LONGEST_NS.swap(0, Ordering::Relaxed).to_string(),
        ["misses", from, to] => {
            let number = |text: &str| text.parse::<u64>().unwrap_or(0);
            let misses = (number(from)..number(to)).map(|slot| misses_of(slot).load(Ordering::Relaxed));
            misses.map(|misses| misses.to_string()).collect::<Vec<_>>().join(" ")
        }
        _ => "unknown request".to_owned(),
    };
    print(&format!("+{} {answer}", words[0]));
}

/// Prints a line by one system call: log records are printed by another thread.
fn print(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}
