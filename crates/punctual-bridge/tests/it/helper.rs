//! The helper, and the thread that receives datagrams, are ordinary threads off the CPUs of the
//! app, according to the kernel.

use std::collections::BTreeSet;
use std::io;
use std::net::UdpSocket;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

use crate::threads::Thread;
use punctual::{Config, Duration};
use punctual_bridge::messages::Vector3;
use punctual_bridge::{Channel, Clock, Datagrams, Incoming, Message, Sample, Sink, Topic};
use punctual_core::cpus;
use test_skip::{Need, skip};

#[derive(Clone, Copy, Message)]
struct Number {
    number: u64,
}

static NUMBERS: Topic<Number, 64> = Topic::new("/numbers");
static WANTED: Incoming<Vector3> = Incoming::new("/wanted", Vector3 { x: 0.0, y: 0.0, z: 0.0 });

/// The kernel's data about the helper.
static HELPER: Mutex<Option<Thread>> = Mutex::new(None);

/// Listens, and sends one message; `sender` gets the settings of the thread that receives it.
fn listen(sender: Sender<Thread>) -> Datagrams {
    let subscription = WANTED.subscribe().expect("the subscription is free");
    let subscription = subscription.release(move |_| sender.send(crate::threads::this()).is_ok());
    let datagrams = Datagrams::listen("127.0.0.1:0", subscription).expect("there are free ports");
    let bytes = [&[0, 1, 0, 0], [0.5_f64; 3].map(f64::to_le_bytes).as_flattened()].concat();
    let socket = UdpSocket::bind("127.0.0.1:0").expect("there are free ports");
    socket.send_to(&bytes, datagrams.address()).expect("it is on this machine");
    datagrams
}

/// Records the thread that calls it.
struct Looking;

impl Sink for Looking {
    fn name(&self) -> String {
        "looking".into()
    }

    fn begin(&mut self, _: &[Channel], _: Clock) -> io::Result<()> {
        Ok(())
    }

    fn write(&mut self, _: &Channel, _: &Sample<'_>) -> io::Result<()> {
        *HELPER.lock().unwrap() = Some(crate::threads::this());
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &[(&'static str, u64)]) -> io::Result<()> {
        Ok(())
    }
}

#[punctual::app(main = false)]
mod app {
    use std::sync::mpsc::Sender;

    use punctual_bridge::{Bridge, Datagrams, Publisher, Running};

    use super::{Looking, NUMBERS, Number, Thread, listen};

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        numbers: Publisher<Number, 64>,
        bridge: Option<Running>,
        datagrams: Datagrams,
    }

    #[init]
    fn init(_: init::Context, sender: Sender<Thread>) -> (Shared, Local) {
        let bridge = Bridge::new().topic(&NUMBERS).sink(Looking).start().expect("it can start");
        let numbers = NUMBERS.publisher().expect("the publisher is free");
        publish::spawn().expect("it is spawned once");
        (Shared {}, Local { numbers, bridge: Some(bridge), datagrams: listen(sender) })
    }

    #[task(local = [numbers])]
    fn publish(cx: publish::Context) {
        cx.local.numbers.publish(punctual::now(), Number { number: 1 });
    }

    /// Ends this app alone: a call of `shutdown` outside of jobs ends the apps of other tests as
    /// well.
    #[task]
    fn end(_: end::Context) {
        punctual::shutdown();
    }

    #[shutdown(local = [bridge, datagrams])]
    fn shutdown(cx: shutdown::Context) {
        let _: &Datagrams = cx.local.datagrams;
        let report = cx.local.bridge.take().expect("it is finished once").finish();
        assert_eq!((report.topics[0].taken, report.topics[0].lost), (1, 0));
    }
}

#[test]
fn helpers_are_ordinary_threads_off_app_cpus() {
    let _turn = test_skip::alone();
    let (sender, receiver) = channel();
    let waits = std::thread::spawn(move || {
        let settings = receiver.recv_timeout(std::time::Duration::from_secs(60)).expect("a datagram comes");
        app::end::spawn().expect("the app is running");
        settings
    });
    let report = app::run(Config::new().until(Duration::from_secs(60)), sender).expect("nothing is required");
    let datagrams = waits.join().expect("a datagram comes");
    let helper = HELPER.lock().unwrap().clone().expect("one message came");
    let all = cpus::list(&crate::threads::this().cpus).count();
    let real_time = report.settings.threads.iter().filter(|thread| thread.policy == "SCHED_FIFO");
    let taken: BTreeSet<usize> = real_time.flat_map(|thread| cpus::list(&thread.cpus)).collect();
    for (name, Thread { policy, cpus, .. }) in [("the helper", helper), ("what takes datagrams", datagrams)] {
        assert_eq!(policy, "0", "{name}: SCHED_OTHER");
        let cpus: BTreeSet<usize> = cpus::list(&cpus).collect();
        if !taken.is_empty() && taken.len() < all {
            assert!(cpus.is_disjoint(&taken), "{name} may run on {cpus:?}, the app has {taken:?}");
        } else {
            skip(Need::System("real-time priorities and a CPU without them"), name);
        }
    }
}
