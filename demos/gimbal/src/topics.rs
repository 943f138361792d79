//! The topics that the controller publishes and receives while it runs.
//!
//! `/angles` and `/target` at 100 Hz and `/currents`, every sample at 10 kHz, are published: the
//! sampling task copies them into rings, from which an ordinary thread takes them. `/setpoint` is
//! received, and recorded, if a link is configured: an ordinary thread checks the messages, and
//! `setpoint` reads the newest one each millisecond, however many arrive. In a replay the recording
//! provides them.

use std::fmt;
use std::io;
use std::net::UdpSocket;
use std::path::PathBuf;

use punctual::Instant;
use punctual_bridge::messages::Vector3;
use punctual_bridge::parameters::TuningReport;
use punctual_bridge::{
    Bridge, Datagrams, Incoming, IncomingReader, IncomingReport, Message, Publisher, Recording, Report,
    Running, StartError, Subscription, Topic, TransportServer, TuningServer, is_replay,
};

use crate::axes::Axes;
use crate::plant::GIMBAL;
use crate::tuning::{self, Factors, TuneError};

/// The name by which transports find the app.
const APP: &str = "gimbal";
/// Samples in a message of currents, and between two messages of angles.
pub const BATCH: usize = 100;
/// The number of messages that may wait: 640 ms of them.
const ROOM: usize = 64;

/// Two angles, in a message type that ROS tools support.
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

/// The currents of the motors since the previous message.
#[derive(Debug, Clone, Copy, PartialEq, Message)]
#[message(name = "gimbal_msgs/msg/Currents")]
pub struct Currents {
    #[message(unit = "A")]
    pan: [f32; BATCH],
    #[message(unit = "A")]
    tilt: [f32; BATCH],
}

/// The measured direction of the gimbal.
static ANGLES: Topic<Angles, ROOM> = Topic::new("/angles").hz(100);
/// The setpoint of the gimbal.
static TARGET: Topic<Angles, ROOM> = Topic::new("/target").hz(100);
static CURRENTS: Topic<Currents, ROOM> = Topic::new("/currents").hz(100);

/// Setpoints from others: `x` pan, `y` tilt, both in rad; `z` is ignored.
static SETPOINT: Incoming<Vector3> = Incoming::new("/setpoint", Vector3 { x: 0.0, y: 0.0, z: 0.0 });

/// Destinations and sources of topics.
#[derive(Debug, Default)]
pub struct Links {
    /// The recording of angles and currents.
    pub recording: Option<Recording>,
    /// The sender of setpoints.
    pub setpoints: Option<Sender>,
    /// Whether the gains can be changed, and a file with the initial ones.
    pub tune: Option<Option<PathBuf>>,
    /// Whether the app runs in virtual time.
    pub virtual_time: bool,
}

/// The sender of the messages on `/setpoint`.
#[derive(Debug)]
pub enum Sender {
    /// Any process that sends datagrams to this socket.
    Datagrams(UdpSocket),
    /// Transports in other processes, which also receive the published topics.
    Transports,
    /// The recording that the process replays.
    Recording,
}

impl Links {
    /// Returns whether there is any link. A replay is one, because it receives all topics.
    pub fn is_any(&self) -> bool {
        self.recording.is_some() || self.setpoints.is_some() || self.tune.is_some() || is_replay()
    }
}

/// An error of starting a link.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The bridge does not start.
    #[error("nothing is published: {0}")]
    Bridge(#[from] StartError),
    /// The thread that receives does not start.
    #[error("no setpoints are received: {0}")]
    Receiver(#[from] io::Error),
    /// The gains cannot be changed.
    #[error(transparent)]
    Tune(#[from] TuneError),
}

/// The running topics.
#[derive(Debug)]
pub(crate) struct Topics {
    bridge: Running,
    angles: Publisher<Angles, ROOM>,
    target: Publisher<Angles, ROOM>,
    currents: Publisher<Currents, ROOM>,
    batch: Currents,
    /// The number of samples in the batch.
    filled: usize,
    datagrams: Option<Datagrams>,
    tuning: Option<TuningServer<Factors>>,
    /// `true` if `/setpoint` is received.
    is_steered: bool,
}

impl Topics {
    /// Starts the threads that carry the topics. To be called in `init`.
    pub(crate) fn start(links: Links) -> Result<Self, LinkError> {
        let mut bridge = Bridge::new().virtual_time(links.virtual_time);
        bridge = bridge.topic(&ANGLES).topic(&TARGET).topic(&CURRENTS);
        let mut tuning = None;
        if let Some(file) = &links.tune {
            bridge = bridge.topic(&tuning::CHANGES);
            tuning = Some(tuning::start(file.as_deref())?);
        }
        if let Some(recording) = links.recording {
            bridge = bridge.sink(recording);
        }
        let is_steered = links.setpoints.is_some();
        let mut receiver = None;
        if let Some(sender) = links.setpoints {
            bridge = bridge.incoming(&SETPOINT);
            let subscription = subscription();
            match sender {
                Sender::Datagrams(socket) => receiver = Some((socket, subscription)),
                Sender::Transports => {
                    bridge = bridge.transports(TransportServer::new(APP).subscribe(subscription));
                }
                // A replay feeds subscriptions even after they are dropped.
                Sender::Recording => {}
            }
        }
        let bridge = bridge.start()?;
        // After the bridge, so that the first setpoint is recorded, too.
        let datagrams = receiver.map(|(socket, subscription)| Datagrams::on(socket, subscription));
        let none = [0.0; BATCH];
        Ok(Self {
            bridge,
            angles: ANGLES.publisher().expect("one app of this kind runs at a time"),
            target: TARGET.publisher().expect("one app of this kind runs at a time"),
            currents: CURRENTS.publisher().expect("one app of this kind runs at a time"),
            batch: Currents { pan: none, tilt: none },
            filled: 0,
            datagrams: datagrams.transpose()?,
            tuning,
            is_steered,
        })
    }

    /// Processes the currents of a sample; returns whether the angles are also needed.
    pub(crate) fn sample(&mut self, released: Instant, currents_a: Axes<f64>) -> bool {
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

    /// Publishes the angles.
    pub(crate) fn angles(&mut self, released: Instant, measured_rad: Axes<f64>, setpoints_rad: Axes<f64>) {
        self.angles.publish(released, measured_rad.into());
        self.target.publish(released, setpoints_rad.into());
    }

    /// Completes recordings, and returns the statistics.
    pub(crate) fn finish(self) -> Carried {
        // First stop the publishers, so that all of their messages are carried.
        let tuning = self.tuning.map(TuningServer::finish);
        drop(self.datagrams);
        let bridge = self.bridge.finish();
        Carried { bridge, incoming: self.is_steered.then(|| SETPOINT.report()), tuning }
    }
}

/// The statistics of a run's messages.
#[derive(Debug)]
pub struct Carried {
    /// The published and recorded messages.
    pub bridge: Report,
    /// The received messages.
    pub incoming: Option<IncomingReport>,
    /// Requests to change the gains.
    pub tuning: Option<TuningReport>,
}

impl Carried {
    /// Returns whether no published message is missing anywhere. Rejected incoming messages do not
    /// count.
    pub fn is_complete(&self) -> bool {
        self.bridge.is_complete()
    }
}

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bridge.fmt(f)?;
        self.incoming.iter().try_for_each(|incoming| writeln!(f, "{incoming}"))?;
        self.tuning.iter().try_for_each(|tuning| writeln!(f, "{tuning}"))
    }
}

/// Accepts setpoints within the mechanical range.
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

/// The newest received setpoint, for one task.
#[derive(Debug)]
pub(crate) struct Wanted(IncomingReader<Vector3>);

impl Wanted {
    /// Creates the reader.
    pub(crate) fn new() -> Self {
        Self(SETPOINT.reader().expect("one app of this kind runs at a time"))
    }

    /// Returns the setpoints in rad, if there are new ones.
    pub(crate) fn newer(&mut self) -> Option<Axes<f64>> {
        let reading = self.0.read();
        reading.is_new.then(|| Axes::new(reading.message.x, reading.message.y))
    }
}
