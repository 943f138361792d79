//! The controller, and the fate of its messages.

use std::net::TcpListener;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{JoinHandle, sleep};
use std::time::Duration as Pause;

use punctual::{Config, StartError};
use punctual_bridge::{Bridge, Incoming, IncomingReport, Report, Running, Topic, TransportServer};
use punctual_core::cpus;

use crate::peer::{Peer, Said};
use crate::threads::{self, Thread};
use crate::transport::{Process, worker_of};
use crate::{Kind, PUBLISHING, State, TOPICS};

/// The capacity of a topic: 409 ms.
pub(crate) const ROOM: usize = 4096;

/// The thread by which an app supervises itself, with or without a bridge: it does no work of the
/// bridge.
const SUPERVISOR: &str = "punctual-watch";

static ALL: [Topic<State, ROOM>; TOPICS] = [
    Topic::new("/t0").hz(10_000),
    Topic::new("/t1").hz(10_000),
    Topic::new("/t2").hz(10_000),
    Topic::new("/t3").hz(10_000),
    Topic::new("/t4").hz(10_000),
    Topic::new("/t5").hz(10_000),
    Topic::new("/t6").hz(10_000),
    Topic::new("/t7").hz(10_000),
];
static SETPOINT: Incoming<State> = Incoming::new("/setpoint", State { values: [0.0; 8] });

/// The result of a window with a bridge.
#[derive(Debug)]
pub(crate) struct Ended {
    carried: Report,
    incoming: IncomingReport,
    /// Since the counts of incoming topics start with the program.
    before: IncomingReport,
    /// The number of the first message of each topic.
    numbers_from: u64,
    /// The result of a peer that has received everything.
    printed: Option<Said>,
    threads: Vec<Thread>,
    /// The threads of the transport.
    others: Vec<Thread>,
    /// The number of jobs that read a setpoint that should have been rejected.
    wrong_setpoints: u64,
    kind: Kind,
}

/// The number of the next message. Numbers continue from one window to the next.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// The bridge, its transport, and the thread that controls the peer.
pub(crate) struct Work {
    bridge: Running,
    transport: Process,
    peers: JoinHandle<(Option<Said>, Vec<Thread>)>,
    over: Sender<()>,
    before: IncomingReport,
}

fn start(kind: Kind) -> Work {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let endpoint = format!("tcp/{}", free.expect("there are free ports"));
    let near = |wanted: &State| match wanted.values[0].abs() <= 1.0 {
        true => Ok(()),
        false => Err("beyond the range".to_owned()),
    };
    let before = SETPOINT.report();
    let subscription = SETPOINT.subscribe().expect("the subscription is free").check(near);
    let app = format!("peers-{}", std::process::id());
    let bridge = ALL.iter().fold(Bridge::new(), Bridge::topic);
    let bridge = bridge.transports(TransportServer::new(&app).subscribe(subscription));
    let bridge = bridge.start().expect("the topics are free");
    let mut transport = Command::new(env!("CARGO_BIN_EXE_punctual-zenoh"));
    let transport = Process::start_transport(transport.args([&app, "--listen", &endpoint]));
    let (over, is_over) = channel();
    let peers = punctual::background::spawn("peers", move || misbehave(kind, &endpoint, &is_over));
    Work { bridge, transport, peers: peers.expect("a thread can be started"), over, before }
}

/// Controls the peer's behavior, and ends it when the bridge has ended.
fn misbehave(kind: Kind, endpoint: &str, over: &Receiver<()>) -> (Option<Said>, Vec<Thread>) {
    let mut peer = Peer::start(endpoint, kind == Kind::Floods);
    sleep(Pause::from_secs(1));
    let threads = threads::all();
    match kind {
        Kind::Without | Kind::Reads | Kind::Floods => {}
        Kind::Stalls => {
            peer.signal(libc::SIGSTOP);
            sleep(Pause::from_secs(2));
            peer.signal(libc::SIGCONT);
        }
        Kind::Killed => {
            sleep(Pause::from_secs(1));
            peer.kill();
            sleep(Pause::from_secs(1));
            peer = Peer::start(endpoint, false);
        }
    }
    // It ends after the app, for any reason.
    let _ = over.recv();
    let printed = peer.end();
    ((kind != Kind::Killed).then_some(printed), threads)
}

impl Work {
    fn finish(self, kind: Kind, wrong_setpoints: u64) -> Ended {
        let worker = worker_of(self.transport.child.id()).expect("it runs");
        let others = threads::of_process(worker.cast_unsigned());
        let carried = self.bridge.finish();
        assert!(self.transport.status().success(), "the transport ends with the app");
        drop(self.over);
        let (printed, threads) = self.peers.join().expect("the peer ends as expected");
        let incoming = SETPOINT.report();
        let published = carried.topics[0].taken + carried.topics[0].lost;
        let numbers_from = NUMBER.fetch_add(published, Ordering::Relaxed);
        Ended {
            carried,
            incoming,
            before: self.before,
            numbers_from,
            printed,
            threads,
            others,
            wrong_setpoints,
            kind,
        }
    }
}

impl Ended {
    /// Prints the counts, and returns `true` if they are consistent.
    pub(crate) fn tell(&self, name: &str, report: &punctual::Report, memory_kib: u64) -> bool {
        let (mut taken, mut lost) = (0, 0);
        for topic in &self.carried.topics {
            (taken, lost) = (taken + topic.taken, lost + topic.lost);
        }
        let transport = &self.carried.transports[0];
        let jobs = report.task("control").map_or(0, |task| task.jobs);
        let published = jobs.min(PUBLISHING) * TOPICS as u64;
        let counted = lost + transport.lost;
        println!(
            "{name}: {published} published, {counted} counted as lost ({lost} in full queues, {} before the transport), {memory_kib} KiB",
            transport.lost
        );
        let mut went_well = true;
        let mut hold = |holds: bool, what: &str| {
            if !holds {
                println!("  WRONG: {what}: {self:?}");
            }
            went_well &= holds;
        };
        hold(taken + lost == published, "taken and lost messages do not add up to the published ones");
        hold(transport.taken + transport.lost == taken, "the transport has lost count");
        hold(transport.attached == 1, "the transport was restarted");
        hold(
            self.others.iter().all(|thread| thread.policy == "0"),
            "a thread of the transport is not ordinary",
        );
        hold(self.wrong_setpoints == 0, "an invalid setpoint was accepted");
        if let Some(Said { topics, sent }) = &self.printed {
            // Before there is a reader nothing is lost, and then everything sent must arrive.
            let end = self.numbers_from + published / TOPICS as u64;
            let wanted: u64 = topics.iter().map(|seen| end.saturating_sub(seen.first)).sum();
            let came: u64 = topics.iter().map(|seen| seen.messages).sum();
            println!("  the peer should have received {wanted}, got {came}");
            hold(came > 0 && came + counted == wanted, "the peer misses messages that were not counted");
            if self.kind == Kind::Floods {
                let since = |count: fn(&IncomingReport) -> u64| count(&self.incoming) - count(&self.before);
                let accepted = since(|report| report.accepted);
                let not = since(|report| report.malformed + report.refused);
                println!("  {sent} setpoints sent: {accepted} accepted, {not} rejected");
                hold(accepted > 0 && not >= 2 * accepted, "invalid setpoints are rejected");
                hold(accepted + not <= *sent, "no more arrive than were sent");
            }
        }
        let granted = report.settings.threads.iter().filter(|thread| thread.policy == "SCHED_FIFO");
        let real_time: Vec<usize> = granted.flat_map(|thread| cpus::list(&thread.cpus)).collect();
        // The app's own threads, of which the first is the main thread.
        let mut own: Vec<u32> = report.settings.threads.iter().map(|thread| thread.kernel_thread).collect();
        own.push(std::process::id());
        for Thread { name, policy, cpus: on, .. } in
            self.threads.iter().filter(|thread| !own.contains(&thread.id) && thread.name != SUPERVISOR)
        {
            hold(policy == "0", &format!("{name} is not an ordinary thread"));
            let apart = real_time.is_empty() || cpus::list(on).all(|cpu| !real_time.contains(&cpu));
            hold(apart, &format!("{name} may run on {on}"));
        }
        went_well
    }
}

#[punctual::app(main = false)]
mod control {
    use punctual_bridge::{IncomingReader, Publisher};

    use super::{ALL, Ended, Kind, PUBLISHING, ROOM, SETPOINT, Sender, State, TOPICS, Work, start};

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        kind: Kind,
        work: Option<Work>,
        publishers: [Publisher<State, ROOM>; TOPICS],
        setpoint: IncomingReader<State>,
        wrong: u64,
        tell: Sender<Ended>,
    }

    #[init]
    fn init(_: init::Context, kind: Kind, tell: Sender<Ended>) -> (Shared, Local) {
        let work = (kind != Kind::Without).then(|| start(kind));
        let publishers = ALL.each_ref().map(|topic| topic.publisher().expect("the publisher is free"));
        let setpoint = SETPOINT.reader().expect("the reader is free");
        (Shared {}, Local { kind, work, publishers, setpoint, wrong: 0, tell })
    }

    #[task(priority = 1, period = 100.micros(), local = [kind, publishers, setpoint, wrong, jobs: u64 = 0])]
    fn control(cx: control::Context) {
        *cx.local.jobs += 1;
        let setpoint = cx.local.setpoint.read().message.values[0];
        *cx.local.wrong += u64::from(!(setpoint == 0.0 || setpoint == 0.5));
        if *cx.local.kind == Kind::Without || *cx.local.jobs > PUBLISHING {
            return;
        }
        let state = State { values: [*cx.local.jobs as f64; 8] };
        for publisher in cx.local.publishers {
            publisher.publish(cx.released, state);
        }
    }

    #[shutdown(local = [kind, work, wrong, tell])]
    fn shutdown(cx: shutdown::Context) {
        if let Some(work) = cx.local.work.take() {
            // The caller of `run` receives it.
            let _ = cx.local.tell.send(work.finish(*cx.local.kind, *cx.local.wrong));
        }
    }
}

/// Runs the controller for a window.
pub(crate) fn run(config: Config, kind: Kind, tell: Sender<Ended>) -> Result<punctual::Report, StartError> {
    control::run(config, kind, tell)
}
