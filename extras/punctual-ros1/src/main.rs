//! A node of ROS 1 for the topics of a Punctual app: a separate process, which attaches to the app.
//!
//! ```text
//! punctual-ros1 APP [NODE]
//! ```
//!
//! ROS 1 has reached its end of life; this program is for machines that still run it. A fault of the
//! client library, rosrust, ends this process and not the app.

mod description;
mod node;

use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use node::{Node, NodeError};
use punctual_bridge::transport::{AttachError, Attachment};

/// The pause before another attempt to attach to an app that does not run yet.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// The interval at which the end of the node is detected.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

const USAGE: &str = "\
usage: punctual-ros1 APP [NODE]

Publishes the topics of a running Punctual app as a node of ROS 1, and passes messages of other
nodes to the app. Waits for the app, and ends with it.

  APP   the app's name, its process number, or the path of its socket
  NODE  the name of the node, by default that of the app

ROS_MASTER_URI, ROS_IP and ROS_HOSTNAME have the usual meaning.

exit status: 0 if the app has ended, 1 after an error, 2 if the arguments are wrong";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (app, name) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        [app] => (app.to_owned(), app.to_owned()),
        [app, name] => (app.to_owned(), name.to_owned()),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    // An ordinary thread, whose settings the threads of rosrust inherit: the process may have been
    // started by one with a real-time policy.
    let run = punctual_bridge::transport::within("punctual-ros1", Duration::MAX, move || run(&app, &name));
    match run {
        Ok(Some(Ok(()))) => ExitCode::SUCCESS,
        Ok(Some(Err(error))) => {
            eprintln!("punctual-ros1: {error}");
            ExitCode::FAILURE
        }
        // The thread has panicked, which printed the reason, or could not be started.
        Ok(None) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("punctual-ros1: cannot start a thread: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Carries messages until the app ends.
fn run(app: &str, name: &str) -> Result<(), Error> {
    // The name of a node: without the directories of a path, and without characters that ROS rejects.
    let name = name.rsplit('/').next().unwrap_or_default();
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let mut app = attach(app)?;
    let mut node = Node::connect(&name, &mut app)?;
    let mut checked = Instant::now();
    loop {
        let is_running = app.wait(CHECK_INTERVAL);
        app.read(|_, message| node.publish(message));
        if !is_running {
            node.leave();
            return Ok(());
        }
        if checked.elapsed() >= CHECK_INTERVAL {
            node.check()?;
            checked = Instant::now();
        }
    }
}

/// Attaches to the app, and waits for its start if necessary.
fn attach(app: &str) -> Result<Attachment, AttachError> {
    let mut is_first = true;
    loop {
        match Attachment::open(app, "ros1") {
            Err(AttachError::NoApp(_)) => {
                if std::mem::take(&mut is_first) {
                    eprintln!("punctual-ros1: waits for the app {app}");
                }
                sleep(RETRY_INTERVAL);
            }
            result => return result,
        }
    }
}

/// The reason why the program ends.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error(transparent)]
    Node(#[from] NodeError),
}
