//! Prints the messages of a running app, as a separate process.
//!
//! ```text
//! cargo run --release -p gimbal -- --seconds 60 &
//! cargo run --release -p punctual-bridge --example print_topics -- gimbal
//! ```
//!
//! A transport to a network has the same structure: it attaches, forwards messages, publishes the
//! ones that it receives, and attaches again after a restart of the app.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use punctual_bridge::message::{Description, parse, show};
use punctual_bridge::transport::{AttachError, Attachment, Direction};

/// The pause before another attempt to attach.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

// ANCHOR: transport
/// Prints the topics of an app, and then the first `limit` messages, or all until the app ends.
pub(crate) fn print(app: &str, limit: usize, to: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let mut app = attach(app)?;
    let mut descriptions: Vec<&Description> = vec![];
    for topic in app.topics() {
        let direction = match topic.direction {
            Direction::Outgoing => "published by the app",
            Direction::Incoming => "received by the app",
        };
        writeln!(to, "{}: {}, {direction}", topic.name, topic.type_name)?;
        // Definitions are texts in the interface language of ROS 2.
        descriptions.push(parse(&topic.type_name, &topic.definition)?);
    }
    to.flush()?;

    let (mut count, mut result, mut is_running) = (0, Ok(()), true);
    while is_running && count < limit && result.is_ok() {
        // The app sees that this transport is alive while it waits. After the end of the app, the
        // last messages can still be read.
        is_running = app.wait(Duration::from_secs(1));
        app.read(|topic, message| {
            count += 1;
            if count <= limit && result.is_ok() {
                let values = show(descriptions[message.topic], message.payload);
                let values = values.unwrap_or_else(|| "malformed".to_owned());
                result = writeln!(to, "{} {}: {values}", topic.name, message.sequence);
            }
        });
    }
    result?;
    let lost: u64 = (0..app.topics().len()).map(|topic| app.lost(topic)).sum();
    writeln!(to, "{lost} messages lost")?;
    Ok(())
}

/// Attaches to an app, and waits for its start if necessary.
fn attach(app: &str) -> Result<Attachment, AttachError> {
    loop {
        match Attachment::open(app, "print-topics") {
            Err(AttachError::NoApp(_)) => std::thread::sleep(RETRY_INTERVAL),
            result => return result,
        }
    }
}
// ANCHOR_END: transport

#[allow(dead_code, reason = "a test includes this file as a module")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [app] = &*arguments else {
        eprintln!("usage: print_topics APP|PROCESS|PATH");
        return ExitCode::from(2);
    };
    match print(app, usize::MAX, &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("print_topics: {error}");
            ExitCode::FAILURE
        }
    }
}
