//! Topics out of real-time tasks and into them: recordings, setpoints, and whatever else gives or takes messages.
//!
//! A task publishes plain data. That copies it into a ring and is done: nothing is allocated, nothing blocks, the kernel is not
//! entered. An ordinary thread takes it from there every 10 ms, to as many [`Sink`]s as there are: a [`Recording`]
//! in the format of MCAP, which viewers open, [`Csv`], or one of your own. What cannot be kept up with is counted, and said.
//!
//! ```
//! use punctual_bridge::{Bridge, Csv, Message, Topic};
//!
//! #[derive(Clone, Copy, Message)]
//! #[message(name = "demo/msg/Angle")]
//! pub struct Angle {
//!     #[message(unit = "rad")]
//!     pan: f64,
//! }
//!
//! static ANGLE: Topic<Angle, 64> = Topic::new("/angle").hz(100);
//!
//! #[punctual::app(main = false)]
//! mod app {
//!     use punctual::prelude::*;
//!     use punctual_bridge::{Bridge, Csv, Publisher, Running};
//!     use super::{ANGLE, Angle};
//!
//!     #[shared]
//!     struct Shared {}
//!
//!     #[local]
//!     struct Local {
//!         angle: Publisher<Angle, 64>,
//!         bridge: Option<Running>,
//!     }
//!
//!     #[init]
//!     fn init(_: init::Context) -> (Shared, Local) {
//!         let csv = Csv::new("/angle", std::io::stdout());
//!         let bridge = Bridge::new().topic(&ANGLE).sink(csv).virtual_time(true).start();
//!         let angle = ANGLE.publisher().expect("nobody else publishes it");
//!         (Shared {}, Local { angle, bridge: Some(bridge.expect("standard output takes lines")) })
//!     }
//!
//!     #[task(period = 10.millis(), local = [angle])]
//!     fn sample(cx: sample::Context) {
//!         cx.local.angle.publish(cx.released, Angle { pan: 0.25 });
//!         if cx.released.duration_since_epoch() >= 50.millis() {
//!             punctual::shutdown();
//!         }
//!     }
//!
//!     #[shutdown(local = [bridge])]
//!     fn shutdown(cx: shutdown::Context) {
//!         let report = cx.local.bridge.take().expect("it is finished once").finish();
//!         assert!(report.is_complete());
//!         eprint!("{report}");
//!     }
//! }
//!
//! # fn main() {
//! let config = punctual::Config::new().virtual_time();
//! app::run(config).expect("nothing can be missing");
//! # }
//! ```
//!
//! # What it costs a task
//!
//! One copy of the message into the ring, whatever becomes of it ([`Publisher::publish`]). When sinks stand still, the ring fills up, and
//! further messages are counted as lost, at about the same cost. Memory is that of the rings, which are static, and of the chunk that a
//! recording is at, besides 100 bytes or so for each 64 KiB that it has written, for the index at its end.
//!
//! # What comes in
//!
//! An [`Incoming`] holds the newest message of a topic, which a task reads; with [`Subscription::release`] each message releases a task
//! besides. What comes may be anything: bytes of another length, numbers that are none, and what the program's own check refuses
//! change nothing but a count. [`Datagrams`] is the transport that is always there; one of your own calls [`Subscription::take`].
//!
//! Reading costs a task one copy of the message and at most three atomic instructions, however many come in between. A release costs what a
//! spawn from an ordinary thread costs, and the job; how often is up to the sender, within the task's capacity.
//!
//! # Features
//!
//! None is on by default.
//!
//! | feature | what for |
//! |---|---|
//! | `mcap` | [`Recording`] |
//! | `parameters` | [`parameters`]: what can be changed while the app runs |
//!
//! # Transports
//!
//! `punctual-ros1`, `punctual-ros2` and `punctual-zenoh` are nodes of these networks, in crates
//! with a lock file of their own, since each needs 90 to 200 other crates. The module [`transport`]
//! describes what such a crate implements and how to write another.
//!
//! [`Recording`]: https://docs.rs/punctual-bridge/latest/punctual_bridge/struct.Recording.html
//! [`parameters`]: https://docs.rs/punctual-bridge/latest/punctual_bridge/parameters/

mod bridge;
mod contained;
mod csv;
mod datagrams;
mod incoming;
pub mod message;
pub mod messages;
#[cfg(feature = "parameters")]
pub mod parameters;
#[cfg(feature = "mcap")]
mod recording;
mod report;
mod sink;
mod topic;
pub mod transport;

// The derive names this crate from outside.
extern crate self as punctual_bridge;

pub use bridge::{Bridge, Running, StartError};
pub use csv::Csv;
pub use datagrams::Datagrams;
pub use incoming::{Incoming, IncomingReader, IncomingReport, NotTaken, Received, Subscription};
pub use message::Message;
#[cfg(feature = "parameters")]
pub use parameters::{Parameters, Tunable, TunableReader, Tuning, TuningServer};
pub use punctual_macros::Message;
#[cfg(feature = "parameters")]
pub use punctual_macros::Parameters;
#[cfg(feature = "mcap")]
pub use recording::Recording;
pub use report::{Report, SinkReport, TopicReport};
pub use sink::{Channel, Clock, Sample, Sink};
pub use topic::{Outgoing, Publisher, Topic};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
