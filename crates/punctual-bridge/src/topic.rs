//! Topics: where tasks leave messages, and where the helper takes them.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;

use punctual::Instant;
use punctual_sync::Taken;
use punctual_sync::shared::{Ring, RingConsumer, RingProducer};

use crate::Message;
use crate::message::Encoder;
use crate::sink::{Channel, Clock};

/// A message as it waits.
#[derive(Debug, Clone, Copy)]
struct Stamped<T> {
    released: Instant,
    sequence: u32,
    message: T,
}

/// A topic of which every message counts: up to `N` wait for the helper, `N` a power of two.
///
/// The helper comes every 10 ms, and late when what it writes to is slow. So `N` is a matter of how long that may stand still
/// without a loss: `rate × pause`. What finds no room is lost, and counted: the numbers of messages
/// ([`Sample::sequence`](crate::Sample::sequence)) have a gap there, and the [`Report`](crate::Report) says how many.
///
/// ```
/// use punctual_bridge::{Message, Topic};
///
/// #[derive(Clone, Copy, Message)]
/// struct Angles {
///     #[message(unit = "rad")]
///     pan: f64,
/// }
/// static ANGLES: Topic<Angles, 256> = Topic::new("/angles").hz(100);
///
/// let mut angles = ANGLES.publisher().expect("nobody else publishes it");
/// angles.publish(punctual::now(), Angles { pan: 0.25 });
/// ```
pub struct Topic<T, const N: usize> {
    name: &'static str,
    hz: Option<u32>,
    waiting: Ring<Stamped<T>, N>,
    /// The number of the next message, while nobody publishes.
    next: AtomicU32,
    /// How many found no room. Written by the publisher.
    lost: AtomicU64,
    /// Whether a publisher waits for room.
    waits: AtomicBool,
}

impl<T, const N: usize> Topic<T, N> {
    /// A topic with this name, which begins with `/`.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            hz: None,
            waiting: Ring::new(),
            next: AtomicU32::new(0),
            lost: AtomicU64::new(0),
            waits: AtomicBool::new(false),
        }
    }

    /// Says that so many messages are published a second, which goes into recordings.
    pub const fn hz(mut self, hz: u32) -> Self {
        self.hz = Some(hz);
        self
    }

    /// How many messages have been lost.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl<T: Message, const N: usize> Topic<T, N> {
    /// The end that publishes. Dropping it makes it available again.
    ///
    /// # Errors
    /// [`Taken`] if somebody has it.
    pub fn publisher(&'static self) -> Result<Publisher<T, N>, Taken> {
        let end = self.waiting.producer()?;
        // Relaxed: the end of the ring is handed over with acquire and release.
        Ok(Publisher { topic: self, end, sequence: self.next.load(Ordering::Relaxed) })
    }
}

impl<T, const N: usize> fmt::Debug for Topic<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut topic = f.debug_struct("Topic");
        topic.field("name", &self.name).field("waiting", &self.waiting.len());
        topic.field("lost", &self.lost()).finish_non_exhaustive()
    }
}

/// The end of a [`Topic`] that publishes: a local of one task.
pub struct Publisher<T: Message, const N: usize> {
    topic: &'static Topic<T, N>,
    end: RingProducer<'static, Stamped<T>, N>,
    sequence: u32,
}

impl<T: Message, const N: usize> Publisher<T, N> {
    /// Publishes a message of the time `released`: of the job (`cx.released` in a periodic task), or [`punctual::now`].
    ///
    /// What finds no room is lost, and counted.
    ///
    /// Real-time safety: wait-free; does not allocate, block or enter the kernel. Copies the message and 16 bytes. In virtual time
    /// ([`Bridge::virtual_time`](crate::Bridge::virtual_time)) it waits for room instead.
    #[inline]
    pub fn publish(&mut self, released: Instant, message: T) {
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        if let Err(message) = self.end.push(Stamped { released, sequence, message }) {
            self.refused(message);
        }
    }

    #[cold]
    fn refused(&mut self, mut message: Stamped<T>) {
        while self.topic.waits.load(Ordering::Relaxed) {
            thread::yield_now();
            message = match self.end.push(message) {
                Ok(()) => return,
                Err(message) => message,
            };
        }
        // One writer: what has this end.
        let lost = &self.topic.lost;
        lost.store(lost.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

impl<T: Message, const N: usize> Drop for Publisher<T, N> {
    fn drop(&mut self) {
        // Relaxed: as in `Topic::publisher`.
        self.topic.next.store(self.sequence, Ordering::Relaxed);
    }
}

impl<T: Message, const N: usize> fmt::Debug for Publisher<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("topic", self.topic).field("sequence", &self.sequence).finish()
    }
}

/// A topic whatever its messages are: what a [`Bridge`](crate::Bridge) carries. [`Topic`] is one.
pub trait Outgoing: private::Outgoing {}

impl<T: Message, const N: usize> Outgoing for Topic<T, N> {}

pub(crate) mod private {
    use super::{Channel, Source, Taken};

    pub trait Outgoing: Sync {
        fn channel(&self) -> Channel;
        fn connect(&'static self, waits: bool) -> Result<Box<dyn Source>, Taken>;
    }
}

/// Where the helper takes messages.
pub trait Source: Send {
    /// Hands what waits to `take`: when it was released, in ns since 1970 by `clock`, its number, and its bytes.
    fn drain(&mut self, encoder: &mut Encoder, clock: &Clock, take: &mut dyn FnMut(u64, u32, &[u8]));

    /// How many messages have been lost.
    fn lost(&self) -> u64;
}

impl<T: Message, const N: usize> private::Outgoing for Topic<T, N> {
    fn channel(&self) -> Channel {
        Channel { topic: self.name, hz: self.hz, capacity: N, description: T::DESCRIPTION }
    }

    fn connect(&'static self, waits: bool) -> Result<Box<dyn Source>, Taken> {
        let end = self.waiting.consumer()?;
        self.waits.store(waits, Ordering::Relaxed);
        Ok(Box::new(Waiting { topic: self, end }))
    }
}

/// The end of a topic that the helper has.
struct Waiting<T: Message, const N: usize> {
    topic: &'static Topic<T, N>,
    end: RingConsumer<'static, Stamped<T>, N>,
}

impl<T: Message, const N: usize> Source for Waiting<T, N> {
    fn drain(&mut self, encoder: &mut Encoder, clock: &Clock, take: &mut dyn FnMut(u64, u32, &[u8])) {
        // No more than there was room for: a task that always publishes does not keep the other topics waiting.
        for _ in 0..N {
            let Some(Stamped { released, sequence, message }) = self.end.pop() else { break };
            let time_ns = clock.time_ns(released);
            take(time_ns, sequence, encoder.encode(time_ns, &message));
        }
    }

    fn lost(&self) -> u64 {
        self.topic.lost()
    }
}

impl<T: Message, const N: usize> Drop for Waiting<T, N> {
    fn drop(&mut self) {
        // Nobody makes room any more.
        self.topic.waits.store(false, Ordering::Relaxed);
    }
}
