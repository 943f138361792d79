//! What the controller tells the world while it runs: angles at 100 Hz, and every current, at 10 kHz.
//!
//! The task that samples copies them into rings; an ordinary thread writes them to a recording.

use punctual::Instant;
use punctual_bridge::{Bridge, Message, Publisher, Recording, Report, Running, StartError, Topic};

use crate::axes::Axes;

/// Samples in a message of currents, and between two messages of angles.
pub const BATCH: usize = 100;
/// How many messages may wait: 640 ms of them.
const ROOM: usize = 64;

/// Where the gimbal points, and where it should.
#[derive(Debug, Clone, Copy, PartialEq, Message)]
#[message(name = "gimbal_msgs/msg/Angles")]
pub struct Angles {
    #[message(unit = "rad")]
    pan: f64,
    #[message(unit = "rad")]
    tilt: f64,
    #[message(unit = "rad")]
    pan_setpoint: f64,
    #[message(unit = "rad")]
    tilt_setpoint: f64,
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

static ANGLES: Topic<Angles, ROOM> = Topic::new("/angles").hz(100);
static CURRENTS: Topic<Currents, ROOM> = Topic::new("/currents").hz(100);

/// Where the topics go.
#[derive(Debug)]
pub struct Output {
    /// The recording.
    pub recording: Recording,
    /// Whether the app runs in virtual time.
    pub virtual_time: bool,
}

/// The topics at work.
#[derive(Debug)]
pub(crate) struct Topics {
    bridge: Running,
    angles: Publisher<Angles, ROOM>,
    currents: Publisher<Currents, ROOM>,
    batch: Currents,
    /// How many samples are in the batch.
    filled: usize,
}

impl Topics {
    /// Starts the thread that writes them. The place for it is `init`.
    pub(crate) fn start(output: Output) -> Result<Self, StartError> {
        let bridge = Bridge::new().topic(&ANGLES).topic(&CURRENTS).virtual_time(output.virtual_time);
        let bridge = bridge.sink(output.recording).start()?;
        let angles = ANGLES.publisher().expect("one app of this kind runs at a time");
        let currents = CURRENTS.publisher().expect("one app of this kind runs at a time");
        let none = [0.0; BATCH];
        Ok(Self { bridge, angles, currents, batch: Currents { pan: none, tilt: none }, filled: 0 })
    }

    /// Takes the currents of a sample; whether the angles are wanted, too.
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
        let (pan, tilt) = (measured_rad.pan, measured_rad.tilt);
        let (pan_setpoint, tilt_setpoint) = (setpoints_rad.pan, setpoints_rad.tilt);
        self.angles.publish(released, Angles { pan, tilt, pan_setpoint, tilt_setpoint });
    }

    /// Completes the recording.
    pub(crate) fn finish(self) -> Report {
        self.bridge.finish()
    }
}
