//! The interface of transports: programs that carry messages between the topics of an app and a
//! network.
//!
//! A network stack can abort, exhaust memory or hang. Therefore a transport is a separate process,
//! which [attaches](Attachment::open) to the [`TransportServer`] of a running
//! app. Several can be attached at a time, and each can be restarted while the app runs. None of
//! them can delay a task, change the app's memory, or affect another transport.
//!
//! ```no_run
//! use std::time::Duration;
//! use punctual_bridge::transport::Attachment;
//!
//! let mut app = Attachment::open("gimbal", "echo")?;
//! let mut setpoint = app.publisher("/setpoint").expect("the app has this topic");
//! while app.wait(Duration::from_secs(1)) {
//!     app.read(|topic, message| {
//!         if topic.name == "/target" {
//!             setpoint.publish(message.payload).expect("both topics have one type");
//!         }
//!     });
//! }
//! # Ok::<(), punctual_bridge::transport::AttachError>(())
//! ```
//!
//! Messages are bytes in CDR, as in ROS 2, of the types that [`TopicInfo`] describes. For ROS 1,
//! [`pack`](crate::message::pack) converts outgoing ones, and
//! [`Attachment::publish_packed`] declares that incoming ones are packed. With the feature
//! `parameters`, `punctual_bridge::parameters::Remotes` reads and changes an app's parameters.
//!
//! | event | what the app counts and reports |
//! |---|---|
//! | the transport dies or detaches | "has detached", within 10 ms, with the unread messages |
//! | it stops, or waits for a peer | "has not responded", after 0.5 s |
//! | it reads too slowly | lost messages, once per second |
//! | it sends too fast, or sends invalid messages | lost and rejected messages, once per second |
//!
//! The book's reference documents the memory for transports in other languages.

mod attachment;
mod layout;
mod memory;
mod report;
mod seat;
mod server;
mod socket;

pub use attachment::{AttachError, Attachment, IncomingPublisher, OutgoingMessage, TooLong};
#[cfg(feature = "mcap")]
pub(crate) use layout::hash;
pub use layout::{Direction, TopicInfo};
pub use report::TransportReport;
pub use server::TransportServer;
pub(crate) use server::{INTERVAL, Server};
