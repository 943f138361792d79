//! What the controller tells the world while it runs, and is told by it.
//!
//! `/angles` and `/target` at 100 Hz and `/currents`, every one at 10 kHz, go out: the task that samples copies them into rings, and an ordinary
//! thread takes them from there. `/setpoint` comes in, where somebody listens to it: an ordinary thread checks what comes, and `setpoint`
//! reads the newest each millisecond, however many there are.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::UdpSocket;
use std::path::PathBuf;

use punctual::Instant;
use punctual_bridge::messages::Vector3;
use punctual_bridge::parameters::TuningReport;
use punctual_bridge::{
    Bridge, Datagrams, Incoming, IncomingReader, IncomingReport, Message, Publisher, Recording, Report,
    Running, StartError, Subscription, Topic, TuningServer,
};

use crate::axes::Axes;
use crate::plant::GIMBAL;
use crate::tuning::{self, Factors, TuneError};

/// Samples in a message of currents, and between two messages of angles.
pub const BATCH: usize = 100;
/// How many messages may wait: 640 ms of them.
const ROOM: usize = 64;

/// Two angles, in the message that the tools of ROS know.
#[derive(Debug, Clone, Copy, PartialEq, Message)]
#[message(name = "geometry_msgs/msg/Vector3")]
pub struct Angles {
    /// Of the pan axis.
    #[message(unit = "rad")]
    pub x: f64,
    /// Of the tilt axis.
    #[message(unit = "rad")]
    pub y: f64,
    /// Always 0.
    #[message(unit = "rad")]
    pub z: f64,
}

impl From<Axes<f64>> for Angles {
    fn from(Axes { pan, tilt }: Axes<f64>) -> Self {
        Self { x: pan, y: tilt, z: 0.0 }
    }
}

/// The currents of the motors since the message before.
#[derive(Debug, Clone, Copy, PartialEq, Message)]
#[message(name = "gimbal_msgs/msg/Currents")]
pub struct Currents {
    #[message(unit = "A")]
    pan: [f32; BATCH],
    #[message(unit = "A")]
    tilt: [f32; BATCH],
}

/// Where the gimbal points.
static ANGLES: Topic<Angles, ROOM> = Topic::new("/angles").hz(100);
/// Where it is to point.
static TARGET: Topic<Angles, ROOM> = Topic::new("/target").hz(100);
static CURRENTS: Topic<Currents, ROOM> = Topic::new("/currents").hz(100);

/// Where others want the gimbal to point: `x` pan, `y` tilt, both in rad; `z` means nothing.
static SETPOINT: Incoming<Vector3> = Incoming::new("/setpoint", Vector3 { x: 0.0, y: 0.0, z: 0.0 });

/// Where the topics go, and where they come from.
#[derive(Debug, Default)]
pub struct Links {
    /// Where angles and currents are recorded.
    pub recording: Option<Recording>,
    /// Where setpoints come as datagrams.
    pub datagrams: Option<UdpSocket>,
    /// Network that carries topics in both directions.
    pub network: Option<Box<dyn Network>>,
    /// Whether the gains can be changed, and a file with those at the start.
    pub tune: Option<Option<PathBuf>>,
    /// Whether the app runs in virtual time.
    pub virtual_time: bool,
}

impl Links {
    /// Whether there is any.
    pub const fn is_any(&self) -> bool {
        self.has_sinks() || self.is_steered() || self.tune.is_some()
    }

    /// Whether anything takes what goes out.
    const fn has_sinks(&self) -> bool {
        self.recording.is_some() || self.network.is_some()
    }

    /// Whether setpoints come from somewhere.
    const fn is_steered(&self) -> bool {
        self.datagrams.is_some() || self.network.is_some()
    }
}

/// A network that a program connects the gimbal to, such as ROS.
pub trait Network: fmt::Debug + Send {
    /// Returns the origin of setpoints, for reports: "ROS 2, /setpoint".
    fn source(&self) -> String;

    /// Joins the network: publishes the topics of `bridge`, takes `setpoints`, and serves the gains
    /// if they can be changed.
    ///
    /// Runs in `init`.
    ///
    /// # Errors
    /// If the network cannot be joined; then the gimbal does not start.
    fn connect(
        self: Box<Self>,
        bridge: Bridge,
        setpoints: Subscription<Vector3>,
        tuning: Option<&TuningServer<Factors>>,
    ) -> Result<Bridge, Box<dyn Error + Send + Sync>>;
}

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The bridge does not start.
    #[error("nothing is published: {0}")]
    Bridge(#[from] StartError),
    /// The thread that receives does not start.
    #[error("no setpoints are received: {0}")]
    Receiver(#[from] io::Error),
    /// The network cannot be joined.
    #[error(transparent)]
    Network(Box<dyn Error + Send + Sync>),
    /// The gains cannot be changed.
    #[error(transparent)]
    Tune(#[from] TuneError),
}

/// The topics at work.
#[derive(Debug)]
pub(crate) struct Topics {
    outgoing: Option<Outgoing>,
    datagrams: Option<Datagrams>,
    tuning: Option<TuningServer<Factors>>,
    /// Whether setpoints come from somewhere.
    is_steered: bool,
}

impl Topics {
    /// Starts the threads that carry them. The place for it is `init`.
    pub(crate) fn start(links: Links) -> Result<Self, LinkError> {
        let (is_steered, has_sinks) = (links.is_steered(), links.has_sinks());
        let datagrams = links.datagrams.map(|socket| Datagrams::on(socket, subscription())).transpose()?;
        let mut bridge = Bridge::new().topic(&ANGLES).topic(&TARGET).topic(&CURRENTS);
        let mut tuning = None;
        if let Some(file) = &links.tune {
            bridge = bridge.topic(&tuning::CHANGES);
            tuning = Some(tuning::start(file.as_deref(), has_sinks)?);
        }
        if let Some(recording) = links.recording {
            bridge = bridge.sink(recording);
        }
        if let Some(network) = links.network {
            bridge = network.connect(bridge, subscription(), tuning.as_ref()).map_err(LinkError::Network)?;
        }
        let bridge = has_sinks.then(|| bridge.virtual_time(links.virtual_time).start()).transpose()?;
        Ok(Self { outgoing: bridge.map(Outgoing::new), datagrams, tuning, is_steered })
    }

    /// Takes the currents of a sample; whether the angles are wanted, too.
    pub(crate) fn sample(&mut self, released: Instant, currents_a: Axes<f64>) -> bool {
        self.outgoing.as_mut().is_some_and(|outgoing| outgoing.sample(released, currents_a))
    }

    /// Publishes the angles.
    pub(crate) fn angles(&mut self, released: Instant, measured_rad: Axes<f64>, setpoints_rad: Axes<f64>) {
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.angles.publish(released, measured_rad.into());
            outgoing.target.publish(released, setpoints_rad.into());
        }
    }

    /// Completes recordings, and says what has become of everything.
    pub(crate) fn finish(self) -> Carried {
        // First what fills the topics, so that they are carried whole.
        let tuning = self.tuning.map(TuningServer::finish);
        drop(self.datagrams);
        let outgoing = self.outgoing.map(|outgoing| outgoing.bridge.finish());
        Carried { outgoing, incoming: self.is_steered.then(|| SETPOINT.report()), tuning }
    }
}

/// What has become of the messages of a run.
#[derive(Debug)]
pub struct Carried {
    /// Those that went out.
    pub outgoing: Option<Report>,
    /// Those that came in.
    pub incoming: Option<IncomingReport>,
    /// Requests to change the gains.
    pub tuning: Option<TuningReport>,
}

impl Carried {
    /// Whether nothing that was published is missing anywhere. What came in and was not wanted does not count.
    pub fn is_complete(&self) -> bool {
        self.outgoing.as_ref().is_none_or(Report::is_complete)
    }
}

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(outgoing) = &self.outgoing {
            outgoing.fmt(f)?;
        }
        self.incoming.iter().try_for_each(|incoming| writeln!(f, "{incoming}"))?;
        self.tuning.iter().try_for_each(|tuning| writeln!(f, "{tuning}"))
    }
}

/// What goes out.
#[derive(Debug)]
struct Outgoing {
    bridge: Running,
    angles: Publisher<Angles, ROOM>,
    target: Publisher<Angles, ROOM>,
    currents: Publisher<Currents, ROOM>,
    batch: Currents,
    /// How many samples are in the batch.
    filled: usize,
}

impl Outgoing {
    fn new(bridge: Running) -> Self {
        let angles = ANGLES.publisher().expect("one app of this kind runs at a time");
        let target = TARGET.publisher().expect("one app of this kind runs at a time");
        let currents = CURRENTS.publisher().expect("one app of this kind runs at a time");
        let none = [0.0; BATCH];
        Self { bridge, angles, target, currents, batch: Currents { pan: none, tilt: none }, filled: 0 }
    }

    fn sample(&mut self, released: Instant, currents_a: Axes<f64>) -> bool {
        let is_first = self.filled == 0;
        self.batch.pan[self.filled] = currents_a.pan as f32;
        self.batch.tilt[self.filled] = currents_a.tilt as f32;
        self.filled += 1;
        if self.filled == BATCH {
            self.filled = 0;
            self.currents.publish(released, self.batch);
        }
        is_first
    }
}

/// Takes setpoints within the mechanical range.
fn subscription() -> Subscription<Vector3> {
    let subscription = SETPOINT.subscribe().expect("one app of this kind runs at a time");
    subscription.check(|wanted| {
        let Axes { pan, tilt } = GIMBAL.map(|axis| axis.range);
        for (name, found, range) in [("x (pan)", wanted.x, pan), ("y (tilt)", wanted.y, tilt)] {
            if !range.contains(found) {
                let (min, max) = (range.min_rad, range.max_rad);
                return Err(format!(
                    "{name} is {found} rad, beyond the mechanical range of {min} to {max} rad"
                ));
            }
        }
        Ok(())
    })
}

/// The newest setpoint that came: for one task.
#[derive(Debug)]
pub(crate) struct Wanted(IncomingReader<Vector3>);

impl Wanted {
    /// The end that reads.
    pub(crate) fn new() -> Self {
        Self(SETPOINT.reader().expect("one app of this kind runs at a time"))
    }

    /// The setpoints in rad, if there are new ones.
    pub(crate) fn newer(&mut self) -> Option<Axes<f64>> {
        let reading = self.0.read();
        reading.is_new.then(|| Axes::new(reading.message.x, reading.message.y))
    }
}
