//! Connecting topics and sinks, and the helper thread between them.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, park_timeout};
use std::time::{Duration, Instant};

use punctual::background::{Traffic, warn};
use punctual_sync::Taken;

use crate::diagnostics::{self, Diagnostics};
use crate::message::Encoder;
use crate::output::{FLUSH_INTERVAL, Output, OutputThread};
use crate::replay::{self, is_replay};
use crate::report::{Report, SinkReport, TopicReport};
use crate::simulation::Simulation;
use crate::sink::{Channel, Clock, Sample, Sink};
use crate::topic::{Outgoing, Source, private};
use crate::transport::{self, Server, TransportServer};
use crate::{Incoming, Message};

/// The interval at which the helper takes queued messages, without transports.
const INTERVAL: Duration = Duration::from_millis(10);
/// The interval of warnings about continuing losses.
const NOTICE_INTERVAL: Duration = Duration::from_secs(1);
/// The length of a pause of the helper that is to be expected, for the warning about small topics.
const LIKELY_PAUSE_MS: u64 = 50;

/// Topics and sinks, before they start.
///
/// See the [crate's documentation](crate) for an example.
#[derive(Default)]
#[must_use = "a bridge carries nothing before it is started"]
pub struct Bridge {
    topics: Vec<&'static dyn private::Outgoing>,
    incoming: Vec<&'static dyn private::Outgoing>,
    sinks: Vec<Box<dyn Sink>>,
    transports: Option<TransportServer>,
    without_diagnostics: bool,
    virtual_time: bool,
    simulated_time: bool,
}

/// The error of [`Bridge::start`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A topic name is invalid.
    #[error(
        "the topic name {0:?} is invalid: it must look like /gimbal/angles, with letters, digits, `_` and `/`"
    )]
    Name(&'static str),
    /// Two topics have the same name.
    #[error("two topics are named {0}")]
    Twice(&'static str),
    /// Another bridge uses the topic.
    #[error("the topic {0} belongs to another bridge that has not finished")]
    Taken(&'static str),
    /// A sink cannot start.
    #[error("{name}: {error}")]
    Sink {
        /// Its name.
        name: String,
        /// The reason.
        error: io::Error,
    },
    /// Transports cannot be admitted.
    #[error("transports cannot be admitted: {0}")]
    Transports(io::Error),
    /// The app cannot follow a simulator.
    #[error("no simulated time: {0}")]
    Simulation(String),
    /// The recording cannot be replayed.
    #[error("no replay: {0}")]
    Replay(String),
    /// The helper thread cannot be started.
    #[error("the thread `punctual-bridge` cannot be started: {0}")]
    Thread(io::Error),
}

impl Bridge {
    /// Creates a bridge without topics and sinks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a topic.
    pub fn topic(mut self, topic: &'static impl Outgoing) -> Self {
        self.topics.push(topic);
        self
    }

    /// Records the messages that an incoming topic receives, except malformed ones, so that
    /// `punctual replay` can provide them again.
    ///
    /// Sinks get them like those of other topics; transports do not. Up to 16384 messages can wait
    /// between two rounds of the helper.
    pub fn incoming<T: Message>(mut self, topic: &'static Incoming<T>) -> Self {
        self.incoming.push(topic);
        self
    }

    /// Adds a sink. All sinks are called one after the other on one thread. With transports, in
    /// real time, each sink has a separate thread, for which up to 16 MiB of messages can wait.
    pub fn sink(mut self, sink: impl Sink + 'static) -> Self {
        self.sinks.push(Box::new(sink));
        self
    }

    /// Admits transports, which are separate processes; see [`transport`](crate::transport). The
    /// helper then takes queued messages every millisecond instead of every 10 ms.
    pub fn transports(mut self, server: TransportServer) -> Self {
        self.transports = Some(server);
        self
    }

    /// Sets whether transports publish the topic `/diagnostics`; they do by default, unless the app
    /// has a topic of this name.
    ///
    /// Each message is a `diagnostic_msgs/msg/DiagnosticArray`, once per second: a status for each
    /// task (jobs, deadline misses, overruns, jitter, response time), one for missing real-time
    /// settings, and one for the messages that were lost or rejected. The level is WARN if there
    /// were faults since the last message, or settings are missing. The bridge's thread publishes
    /// it; tasks are not involved. Sinks do not receive it.
    pub fn diagnostics(mut self, is_published: bool) -> Self {
        self.without_diagnostics = !is_published;
        self
    }

    /// Sets whether the app runs in virtual time. If so, times start at zero, and a publisher waits
    /// for a free slot instead of losing a message, because virtual time may advance much faster
    /// than messages can be written.
    pub fn virtual_time(mut self, is_virtual: bool) -> Self {
        self.virtual_time = is_virtual;
        self
    }

    /// Makes virtual time follow a simulator: it advances only as far as the topic `/clock` of type
    /// `rosgraph_msgs/msg/Clock` permits, which a transport carries. Implies
    /// [`virtual_time`](Self::virtual_time); [`start`](Self::start) must be called in `init`.
    ///
    /// The first message sets the simulated time of the start of virtual time, before which no job
    /// runs. A message with the time `t` lets all jobs run that are released until `t`, inclusive,
    /// after the messages that arrived before it have reached their topics. No time passes
    /// otherwise, also while no simulator runs. Outgoing messages have the simulated time of their
    /// release, as if it were that since 1970.
    ///
    /// After a message with an earlier time than before, as after a reset of the simulator, virtual
    /// time continues, and later messages of the app have the new time. After a jump forward all
    /// jobs of the time in between run. Malformed messages on `/clock` are rejected and counted. In
    /// a [replay](crate::is_replay), time is that of the recording.
    ///
    /// ```no_run
    /// # use punctual_bridge::messages::Vector3;
    /// # use punctual_bridge::{Bridge, Topic, TransportServer};
    /// # static ANGLES: Topic<Vector3, 64> = Topic::new("/angles").hz(100);
    /// let is_simulated = std::env::var_os("SIMULATED").is_some();
    /// let transports = TransportServer::new("gimbal");
    /// let bridge = Bridge::new().topic(&ANGLES).transports(transports).simulated_time(is_simulated);
    /// let running = bridge.start()?;
    /// # Ok::<(), punctual_bridge::StartError>(())
    /// ```
    pub fn simulated_time(mut self, is_simulated: bool) -> Self {
        self.simulated_time = is_simulated;
        self
    }

    /// Starts the helper: an ordinary thread, off the CPUs of the partitions if the machine has
    /// others and the app has been started. Therefore call it in `init`.
    ///
    /// # Errors
    /// See [`StartError`]; in that case no topic is taken.
    ///
    /// In a [replay](crate::is_replay) the bridge carries topics in virtual time, feeds the
    /// recorded inputs, compares the published messages, and admits no transports.
    pub fn start(mut self) -> Result<Running, StartError> {
        let outgoing = self.topics.len();
        self.topics.append(&mut self.incoming);
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
        let replay = replay::begin().map_err(StartError::Replay)?;
        if is_replay() {
            (self.virtual_time, self.transports, self.simulated_time) = (true, None, false);
        }
        let simulation = match &mut self.transports {
            _ if !self.simulated_time => None,
            Some(server) => Some(Simulation::start(server).map_err(StartError::Simulation)?),
            None => {
                return Err(StartError::Simulation("add `Bridge::transports`, which carry /clock".into()));
            }
        };
        self.virtual_time |= self.simulated_time;
        let connect = |(topic, channel): (&&'static dyn private::Outgoing, &Channel)| {
            let source =
                topic.connect(self.virtual_time).map_err(|Taken| StartError::Taken(channel.topic))?;
            let lost_before = source.lost();
            let traffic = Traffic::new(channel.topic);
            Ok(Carried {
                channel: *channel,
                source,
                taken: 0,
                lost_before,
                logged_losses: lost_before,
                traffic,
            })
        };
        let topics =
            self.topics.iter().zip(&channels).map(connect).collect::<Result<Vec<_>, StartError>>()?;
        let clock = match &replay {
            Some(replay) => Clock::of_virtual_time(replay.offset_ns()),
            None if self.virtual_time => Clock::of_virtual_time(0),
            None => Clock::system(),
        };
        if let Some(replay) = replay {
            self.sinks.push(replay.start().map_err(StartError::Replay)?);
        }
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

        let has_own = channels.iter().any(|channel| channel.topic == diagnostics::TOPIC);
        let is_published = !self.without_diagnostics && !has_own && !self.virtual_time;
        let diagnostics = self.transports.as_ref().filter(|_| is_published);
        let diagnostics = diagnostics.map(|server| Diagnostics::new(server.name()));
        let mut offered = channels[..outgoing].to_vec();
        offered.extend(diagnostics.as_ref().map(|_| Diagnostics::channel()));
        let server = self.transports.map(|server| server.start(&offered)).transpose();
        let server = server.map_err(StartError::Transports)?;
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let (mut sinks, mut threads) = (sinks, vec![]);
        if server.is_some() && !self.virtual_time {
            let start = |output| OutputThread::start(output, channels.clone()).map_err(StartError::Thread);
            threads = sinks.drain(..).map(start).collect::<Result<_, _>>()?;
        }
        let encoder = Encoder::default();
        let helper =
            Helper { topics, outgoing, sinks, threads, server, simulation, diagnostics, clock, encoder };
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

/// Returns `true` if ROS 2 would accept it as the name of a topic.
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
            "{} has a capacity of {} messages, or {:.1} ms; use at least {wanted} to avoid losses",
            channel.topic,
            channel.capacity,
            channel.capacity as f64 * 1e3 / f64::from(hz),
        ));
    }
}

/// A running bridge. Dropping it finishes it, and warns about losses.
#[derive(Debug)]
pub struct Running {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Report>>,
}

impl Running {
    /// Delivers queued messages, completes the recordings, ends the helper and returns the report.
    ///
    /// For ordinary threads: `#[shutdown]`, or after the run of the app.
    pub fn finish(mut self) -> Report {
        self.end().unwrap_or_default()
    }

    fn end(&mut self) -> Option<Report> {
        let thread = self.thread.take()?;
        self.over.store(true, Ordering::Release);
        thread.thread().unpark();
        // Panics of sinks are caught, and the rest of the thread does not panic.
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

/// A topic of the bridge.
struct Carried {
    channel: Channel,
    source: Box<dyn Source>,
    taken: u64,
    /// The number of losses before the bridge started.
    lost_before: u64,
    /// The number of reported losses.
    logged_losses: u64,
    traffic: Traffic,
}

impl Carried {
    /// Returns the number of messages that were lost since the bridge was started.
    fn lost(&self) -> u64 {
        self.source.lost().wrapping_sub(self.lost_before)
    }
}

/// The state of the helper thread.
struct Helper {
    /// The outgoing topics, then the incoming ones.
    topics: Vec<Carried>,
    outgoing: usize,
    /// Without transports, the sinks.
    sinks: Vec<Output>,
    /// With transports, the sinks.
    threads: Vec<OutputThread>,
    server: Option<Server>,
    simulation: Option<Simulation>,
    /// The publisher of the topic after the others.
    diagnostics: Option<Diagnostics>,
    clock: Clock,
    encoder: Encoder,
}

impl Helper {
    fn run(mut self, over: &AtomicBool) -> Report {
        let (mut flushed, mut noticed) = (Instant::now(), None);
        loop {
            // Read before the round, so that the round includes all messages published before the
            // end.
            let is_last = over.load(Ordering::Acquire);
            let clock = self.simulation.as_ref().and_then(Simulation::new_clock);
            self.carry();
            if let (Some(simulation), Some(clock)) = (&self.simulation, clock) {
                self.clock = clock;
                simulation.adopted();
            }
            self.count();
            if let Some(server) = &mut self.server {
                server.end_round(self.clock.offset_ns());
            }
            if flushed.elapsed() >= FLUSH_INTERVAL {
                self.sinks.iter_mut().for_each(|output| _ = output.call(|sink| sink.flush()));
                flushed = Instant::now();
                self.follow_clock();
            }
            if is_last || noticed.is_none_or(|noticed: Instant| noticed.elapsed() >= NOTICE_INTERVAL) {
                noticed = self.log_losses().then(Instant::now).or(noticed);
            }
            if is_last {
                return self.finish();
            }
            park_timeout(if self.server.is_some() { transport::INTERVAL } else { INTERVAL });
        }
    }

    /// Stamps messages with the new time if the system clock was set.
    fn follow_clock(&mut self) {
        if let Some(step) = self.clock.follow() {
            warn(format_args!(
                "the system clock was set by {:+.3} s; messages from now on have the new time",
                step as f64 / 1e9
            ));
        }
    }

    /// Passes queued messages to the sinks.
    fn carry(&mut self) {
        let Self { topics, outgoing, sinks, threads, server, diagnostics, clock, encoder, .. } = self;
        for (index, Carried { channel, source, taken, .. }) in topics.iter_mut().enumerate() {
            source.drain(encoder, clock, &mut |time_ns, sequence, payload| {
                *taken += 1;
                let monotonic_ns = time_ns.wrapping_sub(clock.offset_ns());
                let sample = Sample { channel: index, time_ns, monotonic_ns, sequence, payload };
                if let Some(server) = server
                    && index < *outgoing
                {
                    server.publish(index, monotonic_ns, sequence, payload);
                }
                for output in sinks.iter_mut().filter(|output| output.takes[index]) {
                    output.write(channel, &sample);
                }
                for thread in threads.iter_mut().filter(|thread| thread.takes[index]) {
                    thread.write(&sample);
                }
            });
        }
        threads.iter_mut().for_each(OutputThread::send);
        if let (Some(server), Some(diagnostics)) = (server, diagnostics) {
            let now = punctual::now();
            if let Some((sequence, payload)) = diagnostics.next(encoder, clock.time_ns(now)) {
                server.publish(*outgoing, now.as_ticks(), sequence, payload);
            }
        }
    }

    /// Prints the counts of messages.
    fn count(&self) {
        for topic in &self.topics {
            topic.traffic.set(topic.taken, topic.lost(), 0);
        }
        self.sinks.iter().for_each(|output| output.count(0));
    }

    /// Reports losses since the last report; returns `true` if there were any.
    fn log_losses(&mut self) -> bool {
        let mut any = false;
        for topic in &mut self.topics {
            let lost = topic.source.lost();
            let new = lost.wrapping_sub(topic.logged_losses);
            if new > 0 {
                warn(format_args!(
                    "{}: {new} messages lost, since {} were already queued",
                    topic.channel.topic, topic.channel.capacity
                ));
                (topic.logged_losses, any) = (lost, true);
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
        // First, because the end of a sink may take long.
        let transports = self.server.map(Server::finish).unwrap_or_default();
        let inline = self.sinks.into_iter().map(|output| output.report);
        let threads = self.threads.into_iter().map(|output| output.finish(&losses));
        Report {
            topics: self.topics.iter().map(topic).collect(),
            sinks: inline.chain(threads).collect(),
            transports,
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual::Instant as Released;

    use super::*;
    use crate::Topic;
    use crate::messages::Vector3;
    use crate::output::tests::slow;

    const LIMIT: Duration = Duration::from_secs(30);

    /// Returns the helper of one topic, with a clock to follow.
    fn helper(topic: &'static dyn Outgoing, sinks: Vec<Output>) -> Helper {
        let (channel, source) = (topic.channel(), topic.connect(false).unwrap());
        let traffic = Traffic::new(channel.topic);
        let topics = vec![Carried { channel, source, taken: 0, lost_before: 0, logged_losses: 0, traffic }];
        let (clock, encoder) = (Clock::outdated(), Encoder::default());
        let (threads, server, simulation, diagnostics) = (vec![], None, None, None);
        Helper { topics, outgoing: 1, sinks, threads, server, simulation, diagnostics, clock, encoder }
    }

    #[test]
    fn flushes_sinks_and_follows_the_system_clock() {
        static TOPIC: Topic<Vector3, 4> = Topic::new("/times");
        let (output, written, flushed) = slow();
        let helper = helper(&TOPIC, vec![output]);
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let thread = Some(std::thread::spawn(move || helper.run(&ends)));
        let running = Running { over, thread };
        assert_eq!(flushed.recv_timeout(LIMIT), Ok(()), "the sink is flushed");
        // The helper follows the clock in the same round, and takes messages at the start of a
        // round.
        let released = punctual::now();
        TOPIC.publisher().unwrap().publish(released, Vector3 { x: 0.0, y: 0.0, z: 0.0 });
        let (time_ns, _) = written.recv_timeout(LIMIT).expect("the message arrives");
        assert_ne!(time_ns, released.as_ticks(), "the time is that of the system clock");
        assert!(running.finish().is_complete());
    }

    #[test]
    fn logs_each_loss_once() {
        static TOPIC: Topic<Vector3, 4> = Topic::new("/losses");
        let mut helper = helper(&TOPIC, vec![]);
        let mut publisher = TOPIC.publisher().unwrap();
        let mut publish = |count| {
            (0..count)
                .for_each(|_| publisher.publish(Released::from_ticks(0), Vector3 { x: 0.0, y: 0.0, z: 0.0 }))
        };
        publish(4);
        assert!(!helper.log_losses());
        publish(1);
        assert!(helper.log_losses() && !helper.log_losses());
        publish(1);
        assert!(helper.log_losses() && !helper.log_losses());
    }

    #[test]
    fn accepts_valid_ros_2_names() {
        for name in ["/a", "/gimbal/angles", "/_x/Y_2"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "/", "angles", "/a/", "//a", "/2", "/a b", "/ä"] {
            assert!(!is_name(name), "{name}");
        }
    }
}
