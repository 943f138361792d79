//! An app whose virtual time follows a simulator.

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use punctual::Config;
use punctual_bridge::message::{Layout, decode};
use punctual_bridge::messages::{Time, Vector3, geometry_msgs};
use punctual_bridge::transport::{Attachment, IncomingPublisher};
use punctual_bridge::{Bridge, Incoming, Report, StartError, Topic, TransportServer};

type Stamped = geometry_msgs::Vector3Stamped;

static ECHO: Topic<Stamped, 4> = Topic::new("/echo");
static WANTED: Incoming<Vector3> = Incoming::new("/wanted", Vector3 { x: 0.0, y: 0.0, z: 0.0 });
static REPORT: Mutex<Option<Report>> = Mutex::new(None);

/// Longer than any machine takes.
const LIMIT: Duration = Duration::from_secs(600);

#[punctual::app(main = false)]
mod controller {
    use punctual_bridge::messages::Header;
    use punctual_bridge::{Bridge, IncomingReader, Publisher, Running, TransportServer};

    use super::{ECHO, REPORT, Stamped, WANTED};

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        echo: Publisher<Stamped, 4>,
        wanted: IncomingReader<super::Vector3>,
        bridge: Option<Running>,
    }

    #[init]
    fn init(_: init::Context, name: String) -> (Shared, Local) {
        let server = TransportServer::new(&name).subscribe(WANTED.subscribe().expect("it is free"));
        let bridge = Bridge::new().topic(&ECHO).transports(server).simulated_time(true).start();
        let bridge = Some(bridge.expect("it can start"));
        let (echo, wanted) = (ECHO.publisher().expect("it is free"), WANTED.reader().expect("it is free"));
        (Shared {}, Local { echo, wanted, bridge })
    }

    /// Publishes the newest message, and its age in y, in ms.
    #[task(period = 10.millis(), local = [echo, wanted])]
    fn control(cx: control::Context) {
        let wanted = cx.local.wanted.read();
        let mut vector = wanted.message;
        vector.y = wanted.received.map_or(-1.0, |received| {
            f64::from(u32::try_from((cx.released - received).as_millis()).expect("it is recent"))
        });
        cx.local.echo.publish(cx.released, Stamped { header: Header::default(), vector });
    }

    #[shutdown(local = [bridge])]
    fn shutdown(cx: shutdown::Context) {
        *REPORT.lock().expect("it is free") = cx.local.bridge.take().map(Running::finish);
    }
}

/// A simulator in lockstep with the app.
struct Simulator {
    app: Attachment,
    clock: IncomingPublisher,
    wanted: IncomingPublisher,
}

/// The app ends with its simulator, also after a failure. So do other apps of this process, whose
/// tests take turns with the simulator's.
impl Drop for Simulator {
    fn drop(&mut self) {
        punctual::shutdown();
    }
}

impl Simulator {
    fn start(app: &str) -> Self {
        let begun = Instant::now();
        let mut app = loop {
            match Attachment::open(app, "simulator") {
                Ok(app) => break app,
                Err(error) => assert!(begun.elapsed() < LIMIT, "{error}"),
            }
            thread::yield_now();
        };
        let clock = app.publisher("/clock").expect("the app subscribes");
        let wanted = app.publisher("/wanted").expect("the app subscribes");
        Self { app, clock, wanted }
    }

    fn publish_time(&mut self, ms: i32) {
        let nanosec = u32::try_from(ms % 1000).expect("it is positive") * 1_000_000;
        let bytes = [&[0, 1, 0, 0][..], &(ms / 1000).to_le_bytes(), &nanosec.to_le_bytes()].concat();
        self.clock.publish(&bytes).expect("the length is that of the type");
    }

    fn publish_wanted(&mut self, x: f64) {
        let bytes = [&[0, 1, 0, 0][..], [x, 0.0, 0.0].map(f64::to_le_bytes).as_flattened()].concat();
        self.wanted.publish(&bytes).expect("the length is that of the type");
    }

    /// Lets time pass until `ms`, and returns the next `count` messages of the app: times in ms, x
    /// and y.
    fn step(&mut self, ms: i32, count: usize) -> Vec<(i32, f64, f64)> {
        self.publish_time(ms);
        let mut came = vec![];
        let begun = Instant::now();
        while came.len() < count {
            assert!(begun.elapsed() < LIMIT && self.app.wait(LIMIT), "no message at {ms} ms");
            self.app.read(|_, message| {
                let echo: Stamped = decode(message.payload, Layout::Cdr).expect("it is valid");
                let Time { sec, nanosec } = echo.header.stamp;
                assert_eq!(echo.header.stamp.to_ns(), Some(message.time_ns));
                came.push((sec * 1000 + (nanosec / 1_000_000) as i32, echo.vector.x, echo.vector.y));
            });
        }
        came
    }
}

#[test]
fn virtual_time_advances_as_far_as_clock_permits() {
    let _turn = test_skip::alone();
    let name = format!("it-simulation-{}", std::process::id());
    let app = name.clone();
    let simulates = thread::spawn(move || {
        let mut simulator = Simulator::start(&app);
        simulator.publish_wanted(1.0);
        // The first time is that of the start of virtual time.
        assert_eq!(simulator.step(1_000_000, 1), [(1_000_000, 1.0, 0.0)]);
        simulator.publish_wanted(2.0);
        let expected = [(1_000_010, 2.0, 9.0), (1_000_020, 2.0, 19.0), (1_000_030, 2.0, 29.0)];
        assert_eq!(simulator.step(1_000_030, 3), expected);
        // Between two releases, nothing happens.
        simulator.publish_time(1_000_035);
        assert_eq!(simulator.step(1_000_040, 1), [(1_000_040, 2.0, 39.0)]);
        // Malformed and negative times are rejected.
        simulator.clock.publish(&[0, 1, 0, 0, 1]).expect("it is not longer");
        simulator.publish_time(-1000);
        // The simulator is reset. The release at 10 ms is the next one.
        simulator.publish_time(0);
        assert_eq!(simulator.step(20, 2), [(10, 2.0, 49.0), (20, 2.0, 59.0)]);
        // The app can be stopped while no time passes.
        drop(simulator);
    });
    controller::run(Config::new().virtual_time(), name).expect("nothing can be missing");
    simulates.join().expect("the simulator does not fail");
    let report = REPORT.lock().expect("it is free").take().expect("the app has ended");
    assert_eq!((report.topics[0].taken, report.topics[0].lost), (7, 0), "{report}");
    assert_eq!(report.transports[0].rejected, 2, "{report}");
    assert_eq!(WANTED.report().accepted, 2);
}

#[test]
fn simulated_time_requires_virtual_time_and_transports() {
    static ANGLES: Topic<Vector3, 4> = Topic::new("/angles");
    let error = |bridge: Bridge| match bridge.topic(&ANGLES).simulated_time(true).start() {
        Err(StartError::Simulation(error)) => error,
        other => panic!("{other:?}"),
    };
    assert!(error(Bridge::new()).starts_with("add `Bridge::transports`"));
    let server = TransportServer::new(&format!("it-real-{}", std::process::id()));
    assert!(error(Bridge::new().transports(server)).starts_with("start the bridge in `init`"));
}
