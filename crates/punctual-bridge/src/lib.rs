//! Topics from and to real-time tasks: recordings, setpoints, and other sinks and sources of
//! messages.
//!
//! A task publishes plain data by copying it into a ring, without allocating, blocking or entering
//! the kernel. An ordinary thread takes it from there every 10 ms, or every millisecond with
//! transports, and passes it to any number of [`Sink`]s: a `Recording` in the MCAP format, which
//! viewers open, [`Csv`], or your own. Losses are counted and reported.
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
//!         let angle = ANGLE.publisher().expect("the publisher is free");
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
//! # Cost for a task
//!
//! One copy of the message into the ring, independent of the sinks ([`Publisher::publish`]). If
//! sinks block, the ring fills up, and further messages are counted as lost, at about the same
//! cost. Memory consists of the rings, which are static, of the current chunk of a recording, and
//! of about 100 bytes for each 64 KiB that a recording has written, for the index at its end.
//!
//! # Incoming messages
//!
//! An [`Incoming`] holds the newest message of a topic, which a task reads; with
//! [`Subscription::release`] each message also releases a task. Input is not trusted: data of
//! another length, with numbers that are not finite (unless accepted), or rejected by the program's
//! check only increments a counter. [`Datagrams`] is the built-in transport; your own transport
//! calls [`Subscription::take`].
//!
//! Reading costs a task one copy of the message and at most three atomic instructions, regardless
//! of the number of messages in between. A release costs as much as a spawn from an ordinary
//! thread, and the job; the sender determines how often, within the task's capacity.
//!
//! # Features
//!
//! None is enabled by default.
//!
//! | feature | contents |
//! |---|---|
//! | `mcap` | `Recording` |
//! | `parameters` | `parameters`: values that can be changed while the app runs |
//!
//! # Transports
//!
//! A [`TransportServer`] admits transports: separate processes, such as nodes of ROS, that read the
//! outgoing topics and publish on the incoming ones through shared memory. An app therefore
//! contains no network stack, and a transport that hangs or crashes does not affect it.
//! [`transport`] is the interface for writing one.

mod bridge;
mod csv;
mod datagrams;
mod diagnostics;
mod incoming;
mod local;
pub mod message;
pub mod messages;
mod output;
#[cfg(feature = "parameters")]
pub mod parameters;
mod peer;
mod qos;
mod recorded_input;
#[cfg(feature = "mcap")]
mod recording;
#[cfg(feature = "mcap")]
mod records;
#[cfg(feature = "mcap")]
mod recovery;
mod replay;
mod report;
mod simulation;
mod sink;
mod topic;
pub mod transport;

// The derive names this crate by its external path.
extern crate self as punctual_bridge;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use bridge::{Bridge, Running, StartError};
pub use csv::Csv;
pub use datagrams::Datagrams;
pub use incoming::{Incoming, IncomingReader, IncomingReport, NotAccepted, Received, Subscription};
pub use message::Message;
#[cfg(feature = "parameters")]
pub use parameters::{Parameters, Tunable, TunableReader, Tuning, TuningServer};
pub use punctual_macros::Message;
#[cfg(feature = "parameters")]
pub use punctual_macros::Parameters;
pub use qos::{Durability, Qos, Reliability};
pub use recorded_input::RecordedInput;
#[cfg(feature = "mcap")]
pub use recording::Recording;
#[cfg(feature = "mcap")]
pub use records::ReadError;
#[cfg(feature = "mcap")]
pub use recovery::{Recovered, recover};
#[cfg(feature = "mcap")]
pub use replay::check_replay;
pub use replay::is_replay;
pub use report::{Report, SinkReport, TopicReport};
pub use sink::{Channel, Clock, Sample, Sink};
pub use topic::{Outgoing, Publisher, Topic};
pub use transport::{TransportReport, TransportServer};

/// Returns the result of `f`; `None` if it panics.
///
/// The data that `f` uses must be usable after a panic, or not be used again.
pub(crate) fn contained<R>(f: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => Some(result),
        Err(payload) => {
            // Its destructor is user code as well.
            std::mem::forget(payload);
            None
        }
    }
}
