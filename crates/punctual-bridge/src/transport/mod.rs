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
//! | it sends more than 63 messages of a topic per ms, or invalid ones | lost and rejected messages, once per second |
//!
//! # Transports in other languages
//!
//! A transport shares two files in memory with the app: it reads the *topics file*, which only the
//! app can change, and writes its own *seat file*, which the app does not trust. This is version 1
//! of both; the example `print_topics` is a transport in Rust.
//!
//! # Attaching
//!
//! 1. Connect to the app's stream socket: with `TransportServer::path`, at that path; otherwise at
//!    the abstract name `punctual-topics/APP/RANDOM` with 16 hexadecimal digits, which
//!    `/proc/net/unix` lists. Check the user of an abstract socket by `SO_PEERCRED`.
//! 2. Send `punctual-transport 1 NAME` and a line feed within 1 s. The name consists of up to 48
//!    letters, digits, `-`, `_` and `.`, not only digits.
//! 3. Receive the byte `+` with two descriptors (`SCM_RIGHTS`), the topics file and the seat file,
//!    or the reason for a refusal as text. An app has 4 seats by default, and each name is used
//!    once.
//! 4. Map the topics file for reading and the seat file for reading and writing. Reject files that
//!    lack the seal `F_SEAL_SHRINK`.
//! 5. Send nothing more: a message detaches the transport. The end of the connection signals the
//!    end of the other process.
//!
//! A transport that attaches under the name of its dead predecessor continues with the messages
//! that the predecessor had not taken.
//!
//! # The topics file
//!
//! Both files consist of 64-bit words in the byte order of the machine. Offsets and lengths are in
//! bytes, and a reader checks that they are inside of the file.
//!
//! | word | content |
//! |--:|---|
//! | 0 | `PunctTop`, as eight bytes in little-endian order |
//! | 1 | version: 1 |
//! | 2 | length of the topics file |
//! | 3 | length of a seat file |
//! | 4 | number of topics |
//! | 16 | heartbeat: time of the app's last round, in ns of `CLOCK_MONOTONIC` |
//! | 17 | offset of the time since 1970 from `CLOCK_MONOTONIC`, in ns, modulo 2⁶⁴ |
//! | 18 | bell: its low half is a futex (not private), which changes after each round with messages |
//! | 19 | 1 after the app has ended |
//! | 32 | table of topics |
//!
//! An entry of the table has 16 words:
//!
//! | word | content |
//! |--:|---|
//! | 0, 1 | offset and length of the name, in UTF-8 |
//! | 2, 3 | offset and length of the type's name, such as `geometry_msgs/msg/Vector3` |
//! | 4, 5 | offset and length of the definition in the interface language of ROS 2 (`ros2msg`) |
//! | 6 | FNV-1a hash of the type's name followed by the definition |
//! | 7 | 0 if the app publishes the topic, 1 if it receives the topic |
//! | 8 | messages per second; 0 if undeclared |
//! | 9 | maximum length of a message |
//! | 10 | number of slots of the ring, a power of two |
//! | 11 | offset of the ring: in the topics file if the app publishes, otherwise in the seat file |
//! | 12 | quality of service: byte 0 is 0 if reliable, 1 if best effort, 2 if best available; byte 1 is 1 if transient local; the high half is the depth, 10 if 0 |
//!
//! # Rings
//!
//! Word 0 of a ring is its tail, the number of messages published so far. The slots begin at word
//! 16. Each has two words and the maximum length, rounded up to words:
//!
//! | word of a slot | content |
//! |--:|---|
//! | 0 | release of the job, in ns of `CLOCK_MONOTONIC` |
//! | 1 | low half: sequence number in the topic; high half: length of the message |
//! | 2 | the message: CDR with its header of four bytes |
//!
//! Message `p` is in slot `p` modulo the number of slots. To read it: load the tail, which must
//! exceed `p`; execute an acquire fence; copy the slot; execute an acquire fence; load the tail
//! again. If it is `p` plus the number of slots or more, the copy is invalid: skip the overwritten
//! messages, and count them. To publish message `p`: execute a release fence; store to the slot;
//! store `p + 1` to the tail with release ordering.
//!
//! # The seat file
//!
//! | word | content |
//! |--:|---|
//! | 0 | `PunctSea` |
//! | 1 | version: 1 |
//! | 2 | length |
//! | 16 | heartbeat: the transport increments it at least twice per second |
//! | 17 | encoding of the transport's messages: 0 for CDR, 1 for the layout of ROS 1 |
//! | 32 | for each topic of the table, four words: position of the next message, messages taken, messages lost, unused |
//!
//! At the start the position is that of the first message to take. The rings of the topics that the
//! app receives follow at the offsets of the table. The transport updates position and counts after
//! each reading.
//!
//! Rings hold about a second of messages of a declared rate, and at most 16 MiB. The app's bridge
//! writes and reads the files every millisecond on an ordinary thread; tasks never access them.

mod attachment;
mod layout;
mod memory;
mod seat;
mod server;
mod socket;

use std::fmt;

pub use attachment::{AttachError, Attachment, IncomingPublisher, OutgoingMessage, TooLong};
#[cfg(feature = "mcap")]
pub(crate) use layout::hash;
pub use layout::{Direction, TopicInfo};
pub use server::TransportServer;
pub(crate) use server::{INTERVAL, Receive, Server};

/// Counts of the messages of all transports that have attached under one name.
///
/// `taken` and `lost` are claims of the transport, which the app does not trust, limited to the
/// number of published messages. The other counts are the app's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransportReport {
    /// The name.
    pub name: String,
    /// The number of times that a transport has attached.
    pub attached: u64,
    /// The number of messages that it has taken from outgoing topics.
    pub taken: u64,
    /// The number of messages that were overwritten before it took them.
    pub lost: u64,
    /// The number of messages that incoming topics have accepted from it.
    pub accepted: u64,
    /// The number of its messages that were malformed, refused, or released no job.
    pub rejected: u64,
    /// The number of its messages that it overwrote before the app read them, by sending too fast.
    pub incoming_lost: u64,
}

impl fmt::Display for TransportReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { taken, lost, accepted, rejected, incoming_lost, .. } = self;
        write!(f, "{taken} messages taken, {lost} lost")?;
        if accepted | rejected | incoming_lost != 0 {
            write!(
                f,
                "; {accepted} received, {rejected} rejected, {incoming_lost} lost by sending too fast"
            )?;
        }
        Ok(())
    }
}
