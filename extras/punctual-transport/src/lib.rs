//! A program that carries the topics of a Punctual app over a network.
//!
//! The network library runs in a worker process with limited memory. It may hang, abort or exhaust
//! its memory: the program restarts a worker that dies, and the app reports and counts what
//! happens.
//!
//! ```no_run
//! use std::convert::Infallible;
//!
//! use punctual_bridge::transport::OutgoingMessage;
//! use punctual_transport::{App, Network};
//!
//! /// Discards every message.
//! struct Discard;
//!
//! impl Network for Discard {
//!     const NAME: &'static str = "discard";
//!     const OPERANDS: &'static str = "";
//!     const HELP: &'static str = "Discards the messages of a running Punctual app.";
//!     type Options = ();
//!     type Error = Infallible;
//!
//!     fn options(_: &str, operands: &[String]) -> Option<()> {
//!         operands.is_empty().then_some(())
//!     }
//!
//!     fn connect((): (), _: App) -> Result<Self, Infallible> {
//!         Ok(Self)
//!     }
//!
//!     fn publish(&mut self, _: &OutgoingMessage<'_>) -> Result<(), String> {
//!         Ok(())
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     punctual_transport::run::<Discard>()
//! }
//! ```

mod carry;
mod command_line;
mod type_hash;
mod worker;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{env, fmt};

use punctual_bridge::transport::{IncomingPublisher, OutgoingMessage, TopicInfo};

use command_line::Parsed;
pub use type_hash::{message_hash, type_hash};

/// A network that carries the topics of an app. Dropping it leaves the network.
///
/// All functions are called in the worker process, in which a panic of any thread is fatal.
pub trait Network: Sized + Send + 'static {
    /// The name of the transport: `ros2` for the program `punctual-ros2`.
    const NAME: &'static str;
    /// The operands after the app, for the usage.
    const OPERANDS: &'static str;
    /// The help: the purpose of the program, the operands, and environment variables.
    const HELP: &'static str;
    /// `true` if the network publishes in the layout of ROS 1 instead of CDR.
    const IS_PACKED: bool = false;
    /// The parsed operands.
    type Options: Send + 'static;
    /// The reason for which a node cannot join the network, or remain in it.
    type Error: Error + Send + 'static;

    /// Parses the operands after `app`; `None` if they are invalid.
    fn options(app: &str, operands: &[String]) -> Option<Self::Options>;

    /// Joins the network, and publishes and subscribes to the topics of the app. The limit is 15 s.
    ///
    /// # Errors
    /// The node cannot join; the program exits.
    fn connect(options: Self::Options, app: App) -> Result<Self, Self::Error>;

    /// Publishes a message of the app. It may block: the app then reports that the transport does
    /// not respond, and counts the messages that it overwrites.
    ///
    /// # Errors
    /// The reason for which the message was dropped. It is counted as lost in the app's report.
    fn publish(&mut self, message: &OutgoingMessage<'_>) -> Result<(), String>;

    /// Called five times per second.
    ///
    /// # Errors
    /// The node has left the network; the program exits.
    fn check(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// The app that a transport is attached to.
#[derive(Debug)]
#[non_exhaustive]
pub struct App {
    /// Its process number; 0 if it is in another PID namespace.
    pub process: u32,
    /// Its topics, in the order of [`OutgoingMessage::topic`].
    pub topics: Vec<AppTopic>,
}

/// A topic of an app.
#[derive(Debug)]
#[non_exhaustive]
pub struct AppTopic {
    /// Name, type and direction.
    pub info: TopicInfo,
    /// The publishing end, if the app receives the topic.
    pub publisher: Option<IncomingPublisher>,
}

/// Returns the last part of the app's name or path, as the name of a ROS node.
pub fn node_name(app: &str) -> String {
    let name = app.rsplit('/').next().unwrap_or_default();
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// Ends the worker process, which is then restarted: for a network library that no longer works.
pub fn restart(name: &str, reason: std::fmt::Arguments<'_>) -> ! {
    print(name, reason);
    std::process::abort()
}

/// Runs the program: 0 if the app has ended, 1 after an error, 2 if the arguments are wrong.
///
/// To be called by `main`, before it starts threads.
pub fn run<N: Network>() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    match command_line::parse::<N>(&arguments) {
        Parsed::Run { app, options, memory_bytes } => {
            worker::supervise(N::NAME, memory_bytes, || match carry::carry::<N>(&app, options) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    print(N::NAME, format_args!("{error}"));
                    ExitCode::FAILURE
                }
            })
        }
        Parsed::Help => {
            println!("{}", command_line::usage::<N>());
            ExitCode::SUCCESS
        }
        Parsed::Wrong => {
            eprintln!("{}", command_line::usage::<N>());
            ExitCode::from(2)
        }
    }
}

/// The highest domain for which there are ports.
const LAST_DOMAIN: u16 = 232;

/// The error of [`ros_domain`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ROS_DOMAIN_ID is {0:?}; it must be a number from 0 to {LAST_DOMAIN}")]
pub struct InvalidDomain(String);

/// Returns the domain in the environment variable `ROS_DOMAIN_ID`; 0 if it is unset or empty.
///
/// # Errors
/// The value is not a domain.
pub fn ros_domain() -> Result<u16, InvalidDomain> {
    let value = env::var_os("ROS_DOMAIN_ID").unwrap_or_default();
    parse_domain(&value.to_string_lossy())
}

fn parse_domain(value: &str) -> Result<u16, InvalidDomain> {
    if value.is_empty() {
        return Ok(0);
    }
    let domain = value.parse().ok().filter(|domain| *domain <= LAST_DOMAIN);
    domain.ok_or_else(|| InvalidDomain(value.to_owned()))
}

/// The interval of messages about continuing failures.
const NOTICE_INTERVAL: Duration = Duration::from_secs(1);

/// Prints a line of the transport `name` on standard error, which may be closed.
pub fn print(name: &str, message: fmt::Arguments<'_>) {
    let line = format!("punctual-{name}: {message}\n");
    // Unlike `eprintln!`, this does not panic.
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Prints failures of the same kind at most once per second, with their number.
#[derive(Debug)]
pub struct Notice {
    name: &'static str,
    count: u64,
    printed: Option<Instant>,
}

impl Notice {
    /// Creates a notice of the transport `name`.
    pub const fn new(name: &'static str) -> Self {
        Self { name, count: 0, printed: None }
    }

    /// Counts a failure.
    pub fn add(&mut self, failure: fmt::Arguments<'_>) {
        self.count += 1;
        if self.printed.is_none_or(|printed| printed.elapsed() >= NOTICE_INTERVAL) {
            self.printed = Some(Instant::now());
            print(self.name, format_args!("{failure} ({} such failures so far)", self.count));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derives_node_name_from_app() {
        assert_eq!(node_name("gimbal"), "gimbal");
        assert_eq!(node_name("/run/my-app.sock"), "my_app_sock");
    }

    #[test]
    fn domain_is_that_of_ros() {
        assert_eq!([parse_domain(""), parse_domain("0"), parse_domain("232")], [Ok(0), Ok(0), Ok(232)]);
        for wrong in ["233", "-1", "x", " 1"] {
            let error = parse_domain(wrong).unwrap_err().to_string();
            assert_eq!(error, format!("ROS_DOMAIN_ID is {wrong:?}; it must be a number from 0 to 232"));
        }
    }
}
