//! An app whose inputs are recorded and replayed, in a separate process.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::time::Duration;

use punctual_bridge::message::Layout;
use punctual_bridge::messages::Vector3;
use punctual_bridge::{
    Bridge, Incoming, IncomingReader, Message, Parameters, Publisher, RecordedInput, Recording, Running,
    Subscription, Topic, Tunable, TunableReader, Tuning, TuningServer, is_replay,
};

/// The variable with the path of the recording that the app writes.
pub(crate) const RECORDING: &str = "REPLAYED_RECORDING";
/// The variable with a change of the app.
pub(crate) const CHANGE: &str = "REPLAYED_CHANGE";

#[derive(Debug, Clone, Copy, Parameters)]
pub(crate) struct Gains {
    #[parameter(default = 2.0, range = 0.0..=10.0)]
    kp: f64,
}

#[derive(Debug, Clone, Copy, Message)]
pub(crate) struct Pulse {
    count: u32,
}

#[derive(Debug, Clone, Copy, Message)]
pub(crate) struct Output {
    effort: f64,
    pulses: u32,
    events: u32,
}

static SETPOINT: Incoming<Vector3> = Incoming::new("/setpoint", Vector3::default());
static GAINS: Tunable<Gains> = Tunable::new();
static CHANGES: Topic<Gains, 16> = Topic::new("/gains");
static PULSES: Topic<Pulse, 64> = Topic::new("/pulses");
static OUTPUT: Topic<Output, 1024> = Topic::new("/output");
static EXTRA: Topic<Pulse, 1024> = Topic::new("/extra");

#[punctual::app(main = false)]
mod app {
    use super::{
        Arc, Gains, IncomingReader, Output, Publisher, Pulse, RecordedInput, Running, Started, TunableReader,
        TuningServer, UnixDatagram, Vector3, change, start,
    };
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        pulses: u32,
        events: u32,
    }

    #[local]
    struct Local {
        setpoint: IncomingReader<Vector3>,
        gains: TunableReader<Gains>,
        line: RecordedInput<UnixDatagram, Pulse, 64>,
        output: Publisher<Output, 1024>,
        extra: Publisher<Pulse, 1024>,
        bridge: Option<Running>,
        _server: Arc<TuningServer<Gains>>,
        change: String,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let Started { setpoint, gains, line, output, extra, bridge, server } =
            start(|_| event::spawn().is_ok());
        let local = Local {
            setpoint,
            gains,
            line,
            output,
            extra,
            bridge: Some(bridge),
            _server: server,
            change: change(),
        };
        (Shared { pulses: 0, events: 0 }, local)
    }

    #[task(
        priority = 1, period = 1.millis(), local = [setpoint, gains, output, extra, change, _server],
        shared = [pulses, events]
    )]
    fn control(cx: control::Context) {
        let change = cx.local.change.as_str();
        let effort = cx.local.gains.read().value.kp * cx.local.setpoint.read().message.x;
        let effort = if change == "effort" && effort > 6.0 { effort + 0.5 } else { effort };
        let (pulses, events) = (cx.shared.pulses, cx.shared.events).lock(|pulses, events| (*pulses, *events));
        cx.local.output.publish(cx.released, Output { effort, pulses, events });
        match change {
            "panic" if effort > 6.0 => panic!("as requested"),
            "extra" if pulses == 3 => cx.local.extra.publish(cx.released, Pulse { count: 3 }),
            _ => {}
        }
    }

    #[task(priority = 2, capacity = 4, shared = [events])]
    fn event(mut cx: event::Context) {
        cx.shared.events.lock(|events| *events += 1);
    }

    #[task(binds = line, priority = 3, local = [line], shared = [pulses])]
    fn receive(mut cx: receive::Context) {
        let pulse = cx.local.line.read(|socket| {
            let mut bytes = [0; 4];
            socket.recv(&mut bytes)?;
            Ok(Pulse { count: u32::from_le_bytes(bytes) })
        });
        cx.shared.pulses.lock(|pulses| *pulses += pulse.map_or(0, |pulse| pulse.count));
    }

    #[shutdown(local = [bridge])]
    fn shutdown(cx: shutdown::Context) {
        drop(cx.local.bridge.take());
    }
}

struct Started {
    setpoint: IncomingReader<Vector3>,
    gains: TunableReader<Gains>,
    line: RecordedInput<UnixDatagram, Pulse, 64>,
    output: Publisher<Output, 1024>,
    extra: Publisher<Pulse, 1024>,
    bridge: Running,
    server: Arc<TuningServer<Gains>>,
}

fn change() -> String {
    std::env::var(CHANGE).unwrap_or_default()
}

fn start(release: impl FnMut(Vector3) -> bool + Send + 'static) -> Started {
    let mut far = None;
    let open = || {
        assert!(!is_replay(), "a replay needs no device");
        let (line, end) = UnixDatagram::pair()?;
        far = Some(end);
        Ok::<_, io::Error>(line)
    };
    let line = PULSES.record_inputs(open).expect("sockets can be made");
    let name = format!("replayed.{}", std::process::id());
    let server = Tuning::new(&GAINS).record(&CHANGES).start(&name).expect("the name is free");
    let server = Arc::new(server);
    let subscription = SETPOINT.subscribe().expect("the subscription is free").release(release);
    let mut bridge = Bridge::new().topic(&OUTPUT).topic(&CHANGES).topic(&PULSES).incoming(&SETPOINT);
    if change() != "unpublished" {
        bridge = bridge.topic(&EXTRA);
    }
    if let Some(path) = std::env::var_os(RECORDING) {
        bridge = bridge.sink(Recording::create(path).expect("the file is new"));
    }
    let bridge = bridge.start().unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(3);
    });
    // Also in a replay, which ignores it.
    let theirs = Arc::clone(&server);
    std::thread::spawn(move || send(subscription, far, &theirs));
    Started {
        setpoint: SETPOINT.reader().expect("the reader is free"),
        gains: GAINS.reader().expect("the reader is free"),
        line,
        output: OUTPUT.publisher().expect("the publisher is free"),
        extra: EXTRA.publisher().expect("the publisher is free"),
        bridge,
        server,
    }
}

/// Sends setpoints and pulses in real time, and sets a parameter halfway.
fn send(mut subscription: Subscription<Vector3>, line: Option<UnixDatagram>, server: &TuningServer<Gains>) {
    for number in 0..20_u32 {
        std::thread::park_timeout(Duration::from_millis(5));
        let mut bytes = vec![0, 1, 0, 0];
        [f64::from(number) / 4.0, 0.0, 0.0].iter().for_each(|it| bytes.extend(it.to_le_bytes()));
        // Without a release if the machine is so busy that four jobs wait.
        let _ = subscription.take(&bytes, Layout::Cdr, &"the test");
        if let Some(line) = line.as_ref().filter(|_| number % 4 == 0) {
            // Fails after the end of the app.
            let _ = line.send(&1_u32.to_le_bytes());
        }
        if number == 10 && !is_replay() {
            server.set(&[("kp", "3.5")]).expect("it is within its range");
        }
    }
    if !is_replay() {
        std::thread::park_timeout(Duration::from_millis(50));
        punctual::shutdown();
    }
}

/// Runs the app until everything was sent.
pub(crate) fn run() {
    let config = punctual::Config::from_env().until(punctual::Duration::from_secs(20));
    let report = app::run(config).expect("it can be started");
    assert_eq!(report.exit_code(), 0, "{report}");
}
