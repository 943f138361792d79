//! Putting topics and sinks together, and the thread between them.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, park_timeout};
use std::time::{Duration, Instant};

use punctual::background::{Traffic, warn};
use punctual_sync::Taken;

use crate::contained::contained;
use crate::message::Encoder;
use crate::report::{Report, SinkReport, TopicReport};
use crate::sink::{Channel, Clock, Sample, Sink};
use crate::topic::{Outgoing, Source};

/// How often the helper takes what waits.
const INTERVAL: Duration = Duration::from_millis(10);
/// How often sinks pass on what they have.
const FLUSH_INTERVAL: Duration = Duration::from_millis(250);
/// How often losses are said while they go on.
const NOTICE_INTERVAL: Duration = Duration::from_secs(1);
/// How long the helper may well be kept from its work, which is what a warning about small topics is based on.
const LIKELY_PAUSE_MS: u64 = 50;

/// Topics and where they go, before it starts.
///
/// See the [crate's documentation](crate) for an example.
#[derive(Default)]
#[must_use = "a bridge carries nothing before it is started"]
pub struct Bridge {
    topics: Vec<&'static dyn Outgoing>,
    sinks: Vec<Box<dyn Sink>>,
    virtual_time: bool,
}

/// Why a bridge did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A name is not one.
    #[error(
        "the topic {0:?} has no proper name: one like /gimbal/angles, of letters, digits, `_` and `/`, is needed"
    )]
    Name(&'static str),
    /// Two topics have one name.
    #[error("two topics are named {0}")]
    Twice(&'static str),
    /// Another bridge has the topic.
    #[error("the topic {0} belongs to another bridge that has not finished")]
    Taken(&'static str),
    /// A sink cannot begin.
    #[error("{name}: {error}")]
    Sink {
        /// What it is called.
        name: String,
        /// What keeps it.
        error: io::Error,
    },
    /// The helper thread cannot be started.
    #[error("the thread `punctual-bridge` cannot be started: {0}")]
    Thread(io::Error),
}

impl Bridge {
    /// One without topics and sinks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Carries `topic`, too.
    pub fn topic(mut self, topic: &'static impl Outgoing) -> Self {
        self.topics.push(topic);
        self
    }

    /// To `sink`, too. All sinks are called one after the other on one thread.
    pub fn sink(mut self, sink: impl Sink + 'static) -> Self {
        self.sinks.push(Box::new(sink));
        self
    }

    /// Says whether the app runs in virtual time. Then times begin at zero, and who finds no room waits for it instead of losing a
    /// message, as virtual time may pass much faster than anything can be written.
    pub fn virtual_time(mut self, is_virtual: bool) -> Self {
        self.virtual_time = is_virtual;
        self
    }

    /// Starts the helper: an ordinary thread, off the CPUs of the partitions if the machine has others and the app has been
    /// started. So the place to call it is `init`.
    ///
    /// # Errors
    /// See [`StartError`]; then nothing has been taken.
    pub fn start(self) -> Result<Running, StartError> {
        let channels: Vec<Channel> = self.topics.iter().map(|topic| topic.channel()).collect();
        for (index, channel) in channels.iter().enumerate() {
            if !is_name(channel.topic) {
                return Err(StartError::Name(channel.topic));
            }
            if channels[..index].iter().any(|other| other.topic == channel.topic) {
                return Err(StartError::Twice(channel.topic));
            }
            warn_if_small(channel);
        }
        let connect = |(topic, channel): (&&'static dyn Outgoing, &Channel)| {
            let source =
                topic.connect(self.virtual_time).map_err(|Taken| StartError::Taken(channel.topic))?;
            let lost_before = source.lost();
            let traffic = Traffic::new(channel.topic);
            Ok(Carried { channel: *channel, source, taken: 0, lost_before, said: lost_before, traffic })
        };
        let topics =
            self.topics.iter().zip(&channels).map(connect).collect::<Result<Vec<_>, StartError>>()?;
        let clock = if self.virtual_time { Clock::of_virtual_time() } else { Clock::system() };
        let begin = |mut sink: Box<dyn Sink>| {
            let name = sink.name();
            let takes = channels.iter().map(|channel| sink.takes(channel)).collect();
            match sink.begin(&channels, clock) {
                Ok(()) => {
                    let traffic = Traffic::new(&name);
                    Ok(Output { sink, takes, report: SinkReport::new(name), traffic })
                }
                Err(error) => Err(StartError::Sink { name, error }),
            }
        };
        let sinks = self.sinks.into_iter().map(begin).collect::<Result<Vec<_>, StartError>>()?;

        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let helper = Helper { topics, sinks, clock, encoder: Encoder::default() };
        let thread = punctual::background::spawn("punctual-bridge", move || helper.run(&ends));
        thread.map(|thread| Running { over, thread: Some(thread) }).map_err(StartError::Thread)
    }
}

impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let topics: Vec<&str> = self.topics.iter().map(|topic| topic.channel().topic).collect();
        let sinks: Vec<String> = self.sinks.iter().map(|sink| sink.name()).collect();
        f.debug_struct("Bridge").field("topics", &topics).field("sinks", &sinks).finish_non_exhaustive()
    }
}

/// Whether ROS 2 would take it for the name of a topic.
fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with(|c: char| c.is_ascii_digit())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    name.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_part))
}

fn warn_if_small(channel: &Channel) {
    let Some(hz) = channel.hz else { return };
    let wanted = (u64::from(hz) * LIKELY_PAUSE_MS / 1000).next_power_of_two();
    if (channel.capacity as u64) < wanted {
        warn(format_args!(
            "{} has room for {} messages, {:.1} ms of it; make that {wanted} or more, or some will be lost",
            channel.topic,
            channel.capacity,
            channel.capacity as f64 * 1e3 / f64::from(hz),
        ));
    }
}

/// A bridge at work. Dropping it finishes it, too, and says what is not complete.
#[derive(Debug)]
pub struct Running {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Report>>,
}

impl Running {
    /// Carries what waits, completes the recordings, ends the helper and says what has become of everything.
    ///
    /// For ordinary threads: `#[shutdown]`, or after the run of the app.
    pub fn finish(mut self) -> Report {
        self.end().unwrap_or_default()
    }

    fn end(&mut self) -> Option<Report> {
        let thread = self.thread.take()?;
        self.over.store(true, Ordering::Release);
        thread.thread().unpark();
        // Panics of sinks are contained, and nothing else there panics.
        thread.join().ok()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(report) = self.end().filter(|report| !report.is_complete()) {
            warn(format_args!("{report}"));
        }
    }
}

/// A topic that is carried.
struct Carried {
    channel: Channel,
    source: Box<dyn Source>,
    taken: u64,
    /// What had been lost before the bridge started.
    lost_before: u64,
    /// The losses that have been said.
    said: u64,
    traffic: Traffic,
}

impl Carried {
    /// How many messages found no room since the bridge was started.
    fn lost(&self) -> u64 {
        self.source.lost().wrapping_sub(self.lost_before)
    }
}

/// A sink that is written to.
struct Output {
    sink: Box<dyn Sink>,
    /// Which topics it wants.
    takes: Vec<bool>,
    report: SinkReport,
    traffic: Traffic,
}

impl Output {
    /// Has the sink take a message.
    fn write(&mut self, channel: &Channel, sample: &Sample<'_>) {
        let mut has_room = true;
        let went_well = self.call(|sink| match sink.write(channel, sample) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                has_room = false;
                Ok(())
            }
            result => result,
        });
        let count = match (went_well, has_room) {
            (true, true) => &mut self.report.written,
            (true, false) => &mut self.report.dropped,
            (false, _) => &mut self.report.missed,
        };
        *count += 1;
    }

    /// Calls the sink, unless it has failed before; whether it went well.
    fn call(&mut self, f: impl FnOnce(&mut dyn Sink) -> io::Result<()>) -> bool {
        if self.report.error.is_some() {
            return false;
        }
        // After a panic it is not called again.
        let error = match contained(|| f(self.sink.as_mut())) {
            Some(Ok(())) => return true,
            Some(Err(error)) => error.to_string(),
            None => "it panicked".into(),
        };
        warn(format_args!("{}: {error}; nothing more is written there", self.report.name));
        self.report.error = Some(error);
        false
    }
}

/// What the helper thread has.
struct Helper {
    topics: Vec<Carried>,
    sinks: Vec<Output>,
    clock: Clock,
    encoder: Encoder,
}

impl Helper {
    fn run(mut self, over: &AtomicBool) -> Report {
        let (mut flushed, mut noticed) = (Instant::now(), None);
        loop {
            // Looked at before the round: what was published before the end is in it.
            let is_last = over.load(Ordering::Acquire);
            self.carry();
            self.count();
            if flushed.elapsed() >= FLUSH_INTERVAL {
                self.sinks.iter_mut().for_each(|output| _ = output.call(|sink| sink.flush()));
                flushed = Instant::now();
            }
            if is_last || noticed.is_none_or(|noticed: Instant| noticed.elapsed() >= NOTICE_INTERVAL) {
                noticed = self.say_losses().then(Instant::now).or(noticed);
            }
            if is_last {
                return self.finish();
            }
            park_timeout(INTERVAL);
        }
    }

    /// Takes what waits to the sinks.
    fn carry(&mut self) {
        let Self { topics, sinks, clock, encoder } = self;
        for (index, Carried { channel, source, taken, .. }) in topics.iter_mut().enumerate() {
            source.drain(encoder, clock, &mut |time_ns, sequence, payload| {
                *taken += 1;
                let sample = Sample { channel: index, time_ns, sequence, payload };
                for output in sinks.iter_mut().filter(|output| output.takes[index]) {
                    output.write(channel, &sample);
                }
            });
        }
    }

    /// Shows what has become of messages.
    fn count(&self) {
        for topic in &self.topics {
            topic.traffic.set(topic.taken, topic.lost(), 0);
        }
        for Output { report, traffic, .. } in &self.sinks {
            traffic.set(report.written, report.dropped + report.missed, 0);
        }
    }

    /// Says what has been lost since the last time; whether there was anything to say.
    fn say_losses(&mut self) -> bool {
        let mut any = false;
        for topic in &mut self.topics {
            let lost = topic.source.lost();
            let new = lost.wrapping_sub(topic.said);
            if new > 0 {
                warn(format_args!(
                    "{}: {new} messages lost, as {} waited to be written already",
                    topic.channel.topic, topic.channel.capacity
                ));
                (topic.said, any) = (lost, true);
            }
        }
        any
    }

    fn finish(mut self) -> Report {
        let losses: Vec<_> = self.topics.iter().map(|topic| (topic.channel.topic, topic.lost())).collect();
        self.sinks.iter_mut().for_each(|output| _ = output.call(|sink| sink.end(&losses)));
        let topic = |topic: &Carried| TopicReport {
            name: topic.channel.topic,
            taken: topic.taken,
            lost: topic.lost(),
        };
        Report {
            topics: self.topics.iter().map(topic).collect(),
            sinks: self.sinks.into_iter().map(|output| output.report).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_names_that_ros_2_takes() {
        for name in ["/a", "/gimbal/angles", "/_x/Y_2"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "/", "angles", "/a/", "//a", "/2", "/a b", "/ä"] {
            assert!(!is_name(name), "{name}");
        }
    }
}
