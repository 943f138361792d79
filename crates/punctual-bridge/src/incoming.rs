//! Topics that come in: where a transport leaves messages, and where tasks find the newest.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant as Clock};

use punctual::Instant;
use punctual::background::{Traffic, warn};
use punctual_sync::Taken;
use punctual_sync::shared::{Latest, LatestReader, LatestWriter};

use crate::Message;
use crate::contained::contained;
use crate::message::{DecodeError, Layout, decode};

/// How often refusals are said while they go on.
const NOTICE_INTERVAL: Duration = Duration::from_secs(1);

/// A topic of which the newest message counts, and which others publish: a `static`.
///
/// A transport, such as [`Datagrams`](crate::Datagrams), has its [`Subscription`], a task its [`IncomingReader`]. What does not have
/// the message's length, has numbers that are not finite, or is refused by the program's own check, changes nothing but a count: the task keeps
/// the last good message.
///
/// ```
/// use punctual_bridge::Incoming;
/// use punctual_bridge::messages::Vector3;
///
/// static SETPOINT: Incoming<Vector3> = Incoming::new("/setpoint", Vector3 { x: 0.0, y: 0.0, z: 0.0 });
///
/// let mut setpoint = SETPOINT.reader().expect("one task reads it");
/// let reading = setpoint.read();
/// assert_eq!((reading.message.x, reading.received), (0.0, None));
/// ```
pub struct Incoming<T> {
    name: &'static str,
    newest: Latest<Received<T>>,
    accepted: AtomicU64,
    malformed: AtomicU64,
    refused: AtomicU64,
    unreleased: AtomicU64,
}

/// A message that came in.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Received<T> {
    /// The message.
    pub message: T,
    /// When it came; `None` of the initial one. How old it may be is for the task to decide.
    pub received: Option<Instant>,
    /// Whether it came since the reading before.
    pub is_new: bool,
}

/// What has become of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct IncomingReport {
    /// The name of the topic.
    pub name: &'static str,
    /// How many were taken.
    pub accepted: u64,
    /// How many were not of this message: of another length, or with numbers that are none.
    pub malformed: u64,
    /// How many the program's own check refused.
    pub refused: u64,
    /// How many were taken and did not release the task, which had as many jobs waiting as it may have.
    pub unreleased: u64,
}

impl IncomingReport {
    /// Whether every message was taken.
    pub const fn is_complete(&self) -> bool {
        self.malformed == 0 && self.refused == 0 && self.unreleased == 0
    }
}

impl fmt::Display for IncomingReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, accepted, malformed, refused, unreleased } = self;
        write!(f, "{name}: {accepted} messages taken, {malformed} malformed, {refused} refused")?;
        if *unreleased > 0 {
            write!(f, ", {unreleased} that released nothing")?;
        }
        Ok(())
    }
}

impl<T: Message> Incoming<T> {
    /// A topic with this name, which begins with `/`, and what tasks find before anything has come.
    pub const fn new(name: &'static str, initial: T) -> Self {
        Self {
            name,
            newest: Latest::new(Received { message: initial, received: None, is_new: false }),
            accepted: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            unreleased: AtomicU64::new(0),
        }
    }

    /// The end that reads: a local of one task. Dropping it makes it available again.
    ///
    /// # Errors
    /// [`Taken`] if somebody has it.
    pub fn reader(&'static self) -> Result<IncomingReader<T>, Taken> {
        self.newest.reader().map(IncomingReader)
    }

    /// The end that takes messages: for a transport. Dropping it makes it available again.
    ///
    /// # Errors
    /// [`Taken`] if somebody has it.
    pub fn subscribe(&'static self) -> Result<Subscription<T>, Taken> {
        let newest = self.newest.writer()?;
        let traffic = Traffic::new(self.name);
        Ok(Subscription { topic: self, newest, check: None, release: None, said: None, traffic })
    }

    /// What has become of messages so far.
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

/// The end of an [`Incoming`] that a task has.
pub struct IncomingReader<T: Message>(LatestReader<'static, Received<T>>);

impl<T: Message> IncomingReader<T> {
    /// The newest message.
    ///
    /// Real-time safety: wait-free; does not allocate, block or enter the kernel, however many come in. Copies the message and 24 bytes.
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

/// Why a message was not taken, or released nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotTaken {
    /// It is not of the topic's kind.
    #[error("{0}")]
    Malformed(#[from] DecodeError),
    /// The program's own check does not want it; with its reason.
    #[error("{0}")]
    Refused(String),
    /// It was taken, but the task has as many jobs waiting as it may have, or the app is not running.
    #[error("the task was not released, since as many jobs wait as may, or the app does not run")]
    Unreleased,
}

/// The end of an [`Incoming`] that a transport has: it reads, checks and passes on what comes.
pub struct Subscription<T: Message> {
    topic: &'static Incoming<T>,
    newest: LatestWriter<'static, Received<T>>,
    check: Option<Check<T>>,
    release: Option<Release<T>>,
    /// When a refusal was said.
    said: Option<Clock>,
    traffic: Traffic,
}

impl<T: Message> Subscription<T> {
    /// Looks at every message before it is taken: ranges, and whatever else has to hold. An error is the reason to refuse it.
    ///
    /// It runs on the thread of the transport. A panic refuses the message.
    pub fn check(mut self, check: impl Fn(&T) -> Result<(), String> + Send + 'static) -> Self {
        self.check = Some(Box::new(check));
        self
    }

    /// Releases a task with each message that is taken: `|setpoint| follow::spawn(setpoint).is_ok()`. `false` is counted.
    ///
    /// Whoever sends decides then how often the task runs, up to its capacity at a time. Where that must not be, let a periodic task read the
    /// newest message instead.
    pub fn release(mut self, release: impl FnMut(T) -> bool + Send + 'static) -> Self {
        self.release = Some(Box::new(release));
        self
    }

    /// The name of its topic.
    pub const fn topic(&self) -> &'static str {
        self.topic.name
    }

    /// Takes the bytes of a message, if they are one that is wanted; `sender` is for warnings.
    ///
    /// For ordinary threads. What is not taken is counted, and said once a second at most.
    ///
    /// # Errors
    /// [`NotTaken`].
    pub fn take(&mut self, bytes: &[u8], layout: Layout, sender: &dyn fmt::Display) -> Result<(), NotTaken> {
        let taken = self.try_take(bytes, layout);
        let counted = match &taken {
            Ok(()) => None,
            Err(NotTaken::Malformed(_)) => Some(&self.topic.malformed),
            Err(NotTaken::Refused(_)) => Some(&self.topic.refused),
            Err(NotTaken::Unreleased) => Some(&self.topic.unreleased),
        };
        if let (Some(count), Err(reason)) = (counted, &taken) {
            count.fetch_add(1, Ordering::Relaxed);
            if self.said.is_none_or(|said| said.elapsed() >= NOTICE_INTERVAL) {
                self.said = Some(Clock::now());
                warn(format_args!("{}: a message from {sender} was not taken: {reason}", self.topic.name));
            }
        }
        let report = self.topic.report();
        self.traffic.set(report.accepted, report.unreleased, report.malformed + report.refused);
        taken
    }

    fn try_take(&mut self, bytes: &[u8], layout: Layout) -> Result<(), NotTaken> {
        let message: T = decode(bytes, layout)?;
        if let Some(check) = &self.check {
            let checked = contained(|| check(&message));
            checked
                .unwrap_or_else(|| Err("the app's own check panicked".to_owned()))
                .map_err(NotTaken::Refused)?;
        }
        self.newest.write(Received { message, received: Some(punctual::now()), is_new: true });
        self.topic.accepted.fetch_add(1, Ordering::Relaxed);
        let released =
            self.release.as_mut().is_none_or(|release| contained(|| release(message)) == Some(true));
        if released { Ok(()) } else { Err(NotTaken::Unreleased) }
    }
}

impl<T: Message> fmt::Debug for Subscription<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut subscription = f.debug_struct("Subscription");
        subscription.field("topic", self.topic).field("is_checked", &self.check.is_some());
        subscription.field("releases", &self.release.is_some()).finish_non_exhaustive()
    }
}
