//! Attaching to the app, joining the network, and carrying messages between them.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

use punctual_bridge::transport::{AttachError, Attachment, Direction};

use crate::{App, AppTopic, Network, Notice, print};

/// The pause before another attempt to attach.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// The time for which an app may refuse a restarted worker, because it has not yet noticed the
/// death of the previous one.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(2);
/// The time limit for joining and leaving the network.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// The interval of heartbeats while the network is joined.
const BEAT_INTERVAL: Duration = Duration::from_millis(50);
/// The interval of [`Network::check`].
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// The reason for which the program ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error<E> {
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error("{0}")]
    Network(E),
    #[error("the network cannot be joined within {} s", CONNECT_TIMEOUT.as_secs())]
    Silent,
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
}

/// Carries messages until the app ends.
pub(crate) fn carry<N: Network>(app: &str, options: N::Options) -> Result<(), Error<N::Error>> {
    let mut attachment = attach(app, N::NAME)?;
    if N::IS_PACKED {
        attachment.publish_packed();
    }
    let topics = attachment.topics().to_vec().into_iter().map(|info| {
        let is_incoming = info.direction == Direction::Incoming;
        let publisher = if is_incoming { attachment.publisher(&info.name) } else { None };
        AppTopic { info, publisher }
    });
    let topics: Vec<AppTopic> = topics.collect();
    let mut dropped = vec![0; topics.len()];
    let app_end = App { process: attachment.process(), topics };
    let mut network = connect::<N>(&attachment, options, app_end)?;
    print(N::NAME, format_args!("carries the topics of {app}"));
    let (mut notice, mut checked) = (Notice::new(N::NAME), Instant::now());
    loop {
        let is_running = attachment.wait(CHECK_INTERVAL);
        attachment.read(|info, message| {
            if let Err(reason) = network.publish(message) {
                dropped[message.topic] += 1;
                notice.add(format_args!("{}: a message was dropped: {reason}", info.name));
            }
        });
        for (topic, count) in dropped.iter_mut().enumerate().filter(|(_, count)| **count > 0) {
            attachment.count_dropped(topic, std::mem::take(count));
        }
        if !is_running {
            leave(network)?;
            return Ok(());
        }
        if checked.elapsed() >= CHECK_INTERVAL {
            network.check().map_err(Error::Network)?;
            checked = Instant::now();
        }
    }
}

/// Attaches to the app, and waits for its start if necessary.
fn attach(app: &str, name: &str) -> Result<Attachment, AttachError> {
    let (begun, mut is_first) = (Instant::now(), true);
    loop {
        match Attachment::open(app, name) {
            Err(AttachError::NoApp(_)) => {
                if std::mem::take(&mut is_first) {
                    print(name, format_args!("waits for the app {app}"));
                }
            }
            Err(AttachError::Refused(_)) if begun.elapsed() < REFUSAL_TIMEOUT => {}
            result => return result,
        }
        sleep(RETRY_INTERVAL);
    }
}

/// Joins the network on another thread, while the app sees that this process is alive.
fn connect<N: Network>(attachment: &Attachment, options: N::Options, app: App) -> Result<N, Error<N::Error>> {
    let (done, is_done) = sync_channel(1);
    Builder::new().name("connect".into()).spawn(move || {
        // After the limit there is no receiver.
        let _ = done.send(N::connect(options, app));
    })?;
    let begun = Instant::now();
    loop {
        attachment.beat();
        match is_done.recv_timeout(BEAT_INTERVAL) {
            Ok(result) => return result.map_err(Error::Network),
            Err(RecvTimeoutError::Timeout) if begun.elapsed() < CONNECT_TIMEOUT => {}
            Err(_) => return Err(Error::Silent),
        }
    }
}

/// Leaves the network, or gives up after a limit.
fn leave<N: Network>(network: N) -> io::Result<()> {
    let (done, is_done) = sync_channel(1);
    Builder::new().name("leave".into()).spawn(move || {
        drop(network);
        let _ = done.send(());
    })?;
    if is_done.recv_timeout(CONNECT_TIMEOUT).is_err() {
        print(N::NAME, format_args!("the network does not confirm the end"));
    }
    Ok(())
}
