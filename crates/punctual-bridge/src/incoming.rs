//! Incoming topics: transports store messages, and tasks read the newest one.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as Clock};

use punctual::Instant;
use punctual::background::{Traffic, warn};
use punctual_sync::Taken;
use punctual_sync::shared::{Latest, LatestReader, LatestWriter};

use crate::Message;
use crate::contained;
use crate::message::{DecodeError, Description, Encoder, Layout, Numbers, decode_with};
use crate::qos::Qos;
use crate::replay::{self, Input, is_replay};
use crate::sink::{Channel, Clock as BridgeClock};
use crate::topic::{Source, private};

/// The number of messages that can wait for being recorded.
const RECORDED_CAPACITY: usize = 1 << 14;
/// The interval of warnings about continuing rejections.
const NOTICE_INTERVAL: Duration = Duration::from_secs(1);

/// An incoming topic of which tasks read the newest message: a `static`.
///
/// A transport, such as [`Datagrams`](crate::Datagrams), uses its [`Subscription`], a task its
/// [`IncomingReader`]. Data that does not have the message's length, contains numbers that are not
/// finite ([unless accepted](Self::numbers)), or is rejected by the program's check only increments
/// a counter: the task keeps the last valid message.
///
/// ```
/// use punctual_bridge::Incoming;
/// use punctual_bridge::messages::Vector3;
///
/// static SETPOINT: Incoming<Vector3> = Incoming::new("/setpoint", Vector3 { x: 0.0, y: 0.0, z: 0.0 });
///
/// let mut setpoint = SETPOINT.reader().expect("the reader is free");
/// let reading = setpoint.read();
/// assert_eq!((reading.message.x, reading.received), (0.0, None));
/// ```
pub struct Incoming<T> {
    name: &'static str,
    qos: Qos,
    numbers: Numbers,
    newest: Latest<Received<T>>,
    accepted: AtomicU64,
    malformed: AtomicU64,
    refused: AtomicU64,
    unreleased: AtomicU64,
    /// Set while a bridge records the messages.
    recorded: Mutex<Option<Recorded<T>>>,
}

/// Messages that wait for being recorded.
struct Recorded<T> {
    messages: VecDeque<(Instant, u32, T)>,
    sequence: u32,
    lost: u64,
}

/// A received message.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Received<T> {
    /// The message.
    pub message: T,
    /// The time of its arrival; `None` for the initial message. The task decides how old it may be.
    pub received: Option<Instant>,
    /// `true` if it arrived since the previous read.
    pub is_new: bool,
}

/// Counts of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct IncomingReport {
    /// The topic.
    pub name: &'static str,
    /// The number of accepted messages.
    pub accepted: u64,
    /// The number of malformed messages: with another length, or with numbers that are not finite
    /// and must be.
    pub malformed: u64,
    /// The number of messages that the program's check refused.
    pub refused: u64,
    /// The number of accepted messages that did not release the task, whose capacity was reached.
    pub unreleased: u64,
}

impl IncomingReport {
    /// Returns `true` if every message was accepted.
    pub const fn is_complete(&self) -> bool {
        self.malformed == 0 && self.refused == 0 && self.unreleased == 0
    }
}

impl fmt::Display for IncomingReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, accepted, malformed, refused, unreleased } = self;
        write!(f, "{name}: {accepted} messages accepted, {malformed} malformed, {refused} refused")?;
        if *unreleased > 0 {
            write!(f, ", {unreleased} without a release")?;
        }
        Ok(())
    }
}

impl<T: Message> Incoming<T> {
    /// Creates a topic with this name, which begins with `/`, and the message that tasks read
    /// before any has arrived, such as `JointState::default()` or, for a message of your own,
    /// [`Value::EMPTY`](crate::message::Value::EMPTY).
    pub const fn new(name: &'static str, initial: T) -> Self {
        Self {
            name,
            qos: Qos::BEST_AVAILABLE,
            numbers: Numbers::Finite,
            newest: Latest::new(Received { message: initial, received: None, is_new: false }),
            accepted: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            unreleased: AtomicU64::new(0),
            recorded: Mutex::new(None),
        }
    }

    /// Sets the quality of service that transports request, [`Qos::BEST_AVAILABLE`] by default.
    pub const fn qos(mut self, qos: Qos) -> Self {
        self.qos = qos;
        self
    }

    /// Sets the floating-point numbers that messages may contain, [`Numbers::Finite`] by default.
    ///
    /// A laser scan has an infinite range where nothing reflects, and a battery without a sensor of
    /// temperature sends NaN: with [`Numbers::Any`] such messages are accepted, and the task or the
    /// [check](Subscription::check) of the program decides about each field.
    ///
    /// ```
    /// use punctual_bridge::message::Numbers;
    /// use punctual_bridge::messages::JointState;
    /// use punctual_bridge::{Incoming, Qos};
    ///
    /// /// Without a sensor of torque, the driver sends NaN as effort.
    /// static JOINTS: Incoming<JointState<6>> =
    ///     Incoming::new("/joint_states", JointState::default()).numbers(Numbers::Any).qos(Qos::SENSOR_DATA);
    /// ```
    pub const fn numbers(mut self, numbers: Numbers) -> Self {
        self.numbers = numbers;
        self
    }

    fn recorded(&self) -> MutexGuard<'_, Option<Recorded<T>>> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a message to the bridge that records it, if any. It is lost if too many wait.
    fn record(&self, received: Instant, message: T) {
        let mut recorded = self.recorded();
        let Some(Recorded { messages, sequence, lost }) = &mut *recorded else { return };
        if messages.len() < RECORDED_CAPACITY {
            messages.push_back((received, *sequence, message));
        } else {
            *lost += 1;
        }
        *sequence = sequence.wrapping_add(1);
    }

    /// Returns the reading end: a local of one task. Dropping it makes it available again.
    ///
    /// # Errors
    /// [`Taken`] if the end is taken.
    pub fn reader(&'static self) -> Result<IncomingReader<T>, Taken> {
        self.newest.reader().map(IncomingReader)
    }

    /// Returns the receiving end, for a transport. Dropping it makes it available again.
    ///
    /// # Errors
    /// [`Taken`] if the end is taken.
    pub fn subscribe(&'static self) -> Result<Subscription<T>, Taken> {
        let newest = self.newest.writer()?;
        let traffic = Traffic::new(self.name);
        let receiver = Receiver { topic: self, newest, check: None, release: None, logged_at: None, traffic };
        let receiver = Arc::new(Mutex::new(receiver));
        replay::register_input(self.name, &receiver);
        Ok(Subscription { topic: self, receiver })
    }

    /// Returns the counts so far.
    pub fn report(&self) -> IncomingReport {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        IncomingReport {
            name: self.name,
            accepted: count(&self.accepted),
            malformed: count(&self.malformed),
            refused: count(&self.refused),
            unreleased: count(&self.unreleased),
        }
    }
}

impl<T> fmt::Debug for Incoming<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The reading end of an [`Incoming`], for a task.
pub struct IncomingReader<T: Message>(LatestReader<'static, Received<T>>);

impl<T: Message> IncomingReader<T> {
    /// Returns the newest message.
    ///
    /// Real-time safety: wait-free; does not allocate, block or enter the kernel, regardless of the
    /// message rate. Copies the message and 24 bytes.
    #[inline]
    pub fn read(&mut self) -> Received<T> {
        let reading = self.0.read();
        Received { is_new: reading.is_new, ..reading.value }
    }
}

impl<T: Message> fmt::Debug for IncomingReader<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IncomingReader").finish()
    }
}

type Check<T> = Box<dyn Fn(&T) -> Result<(), String> + Send>;
type Release<T> = Box<dyn FnMut(T) -> bool + Send>;

/// The reason why a message was rejected, or released no job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAccepted {
    /// It is not of the topic's type.
    #[error("{0}")]
    Malformed(#[from] DecodeError),
    /// The program's check rejects it, with this reason.
    #[error("{0}")]
    Refused(String),
    /// It was accepted, but the task has reached its capacity, or the app is not running.
    #[error("the task was not released, because its capacity is reached or the app is not running")]
    Unreleased,
}

/// The receiving end of an [`Incoming`], for a transport: it decodes, checks and stores messages.
///
/// In a [replay](crate::is_replay) it ignores messages from transports: the recording provides
/// them.
pub struct Subscription<T: Message> {
    topic: &'static Incoming<T>,
    /// A replay feeds it, too.
    receiver: Arc<Mutex<Receiver<T>>>,
}

struct Receiver<T: Message> {
    topic: &'static Incoming<T>,
    newest: LatestWriter<'static, Received<T>>,
    check: Option<Check<T>>,
    release: Option<Release<T>>,
    /// The time of the last warning.
    logged_at: Option<Clock>,
    traffic: Traffic,
}

impl<T: Message> Subscription<T> {
    /// Sets a check of every message before it is accepted, for ranges and other conditions. An
    /// error is the reason for the rejection.
    ///
    /// It runs on the transport's thread. A panic rejects the message.
    pub fn check(self, check: impl Fn(&T) -> Result<(), String> + Send + 'static) -> Self {
        self.receiver().check = Some(Box::new(check));
        self
    }

    /// Releases a task with each accepted message: `|setpoint| follow::spawn(setpoint).is_ok()`.
    /// `false` is counted.
    ///
    /// The sender then controls how often the task runs, limited by its capacity. If that is not
    /// acceptable, use a periodic task that reads the newest message instead.
    pub fn release(self, release: impl FnMut(T) -> bool + Send + 'static) -> Self {
        self.receiver().release = Some(Box::new(release));
        self
    }

    fn receiver(&self) -> MutexGuard<'_, Receiver<T>> {
        // Panics of the program's functions are caught, and leave a complete message.
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the name of the topic.
    pub const fn topic(&self) -> &'static str {
        self.topic.name
    }

    /// Returns the quality of service that a transport requests.
    pub const fn qos(&self) -> Qos {
        self.topic.qos
    }

    /// Decodes and accepts the bytes of a message, if they are valid; `sender` is for warnings.
    ///
    /// For ordinary threads. Rejected messages are counted, and reported at most once per second.
    ///
    /// # Errors
    /// [`NotAccepted`].
    pub fn take(
        &mut self,
        bytes: &[u8],
        layout: Layout,
        sender: &dyn fmt::Display,
    ) -> Result<(), NotAccepted> {
        if is_replay() { Ok(()) } else { self.receiver().take(bytes, layout, sender) }
    }
}

impl<T: Message> Receiver<T> {
    fn take(&mut self, bytes: &[u8], layout: Layout, sender: &dyn fmt::Display) -> Result<(), NotAccepted> {
        let taken = self.try_take(bytes, layout);
        let counted = match &taken {
            Ok(()) => None,
            Err(NotAccepted::Malformed(_)) => Some(&self.topic.malformed),
            Err(NotAccepted::Refused(_)) => Some(&self.topic.refused),
            Err(NotAccepted::Unreleased) => Some(&self.topic.unreleased),
        };
        if let (Some(count), Err(reason)) = (counted, &taken) {
            count.fetch_add(1, Ordering::Relaxed);
            if self.logged_at.is_none_or(|logged_at| logged_at.elapsed() >= NOTICE_INTERVAL) {
                self.logged_at = Some(Clock::now());
                warn(format_args!("{}: a message from {sender} was rejected: {reason}", self.topic.name));
            }
        }
        let report = self.topic.report();
        self.traffic.set(report.accepted, report.unreleased, report.malformed + report.refused);
        taken
    }

    fn try_take(&mut self, bytes: &[u8], layout: Layout) -> Result<(), NotAccepted> {
        let message: T = decode_with(bytes, layout, self.topic.numbers)?;
        let received = punctual::now();
        self.topic.record(received, message);
        if let Some(check) = &self.check {
            let checked = contained(|| check(&message));
            checked
                .unwrap_or_else(|| Err("the app's check panicked".to_owned()))
                .map_err(NotAccepted::Refused)?;
        }
        self.newest.write(Received { message, received: Some(received), is_new: true });
        self.topic.accepted.fetch_add(1, Ordering::Relaxed);
        let released =
            self.release.as_mut().is_none_or(|release| contained(|| release(message)) == Some(true));
        if released { Ok(()) } else { Err(NotAccepted::Unreleased) }
    }
}

impl<T: Message> fmt::Debug for Subscription<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut subscription = f.debug_struct("Subscription");
        subscription.field("topic", self.topic).field("is_checked", &self.receiver().check.is_some());
        subscription.field("releases", &self.receiver().release.is_some()).finish_non_exhaustive()
    }
}

impl<T: Message> Input for Mutex<Receiver<T>> {
    fn description(&self) -> &'static Description {
        T::DESCRIPTION
    }

    fn feed(&self, payload: &[u8]) -> Result<(), String> {
        let mut receiver = self.lock().unwrap_or_else(PoisonError::into_inner);
        match receiver.take(payload, Layout::Cdr, &"the recording") {
            Err(NotAccepted::Malformed(error)) => Err(error.to_string()),
            // As in the recorded run, or by the changed app.
            Ok(()) | Err(NotAccepted::Refused(_) | NotAccepted::Unreleased) => Ok(()),
        }
    }
}

impl<T: Message> private::Outgoing for Incoming<T> {
    fn channel(&self) -> Channel {
        Channel {
            topic: self.name,
            hz: None,
            capacity: RECORDED_CAPACITY,
            qos: self.qos,
            description: T::DESCRIPTION,
            is_input: true,
        }
    }

    fn connect(&'static self, _: bool) -> Result<Box<dyn Source>, Taken> {
        let mut recorded = self.recorded();
        if recorded.is_some() {
            return Err(Taken);
        }
        *recorded = Some(Recorded { messages: VecDeque::new(), sequence: 0, lost: 0 });
        Ok(Box::new(Recorder(self)))
    }
}

/// Passes received messages to a bridge, until dropped.
struct Recorder<T: Message>(&'static Incoming<T>);

impl<T: Message> Source for Recorder<T> {
    fn drain(&mut self, encoder: &mut Encoder, clock: &BridgeClock, take: &mut dyn FnMut(u64, u32, &[u8])) {
        let messages = self.0.recorded().as_mut().map(|recorded| std::mem::take(&mut recorded.messages));
        for (received, sequence, message) in messages.unwrap_or_default() {
            let time_ns = clock.time_ns(received);
            take(time_ns, sequence, encoder.encode(time_ns, &message));
        }
    }

    fn lost(&self) -> u64 {
        self.0.recorded().as_ref().map_or(0, |recorded| recorded.lost)
    }
}

impl<T: Message> Drop for Recorder<T> {
    fn drop(&mut self) {
        *self.0.recorded() = None;
    }
}
