//! Topics: queues between tasks and the helper.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;

use punctual::Instant;
use punctual_sync::Taken;
use punctual_sync::shared::{Ring, RingConsumer, RingProducer};

use crate::Message;
use crate::message::Encoder;
use crate::qos::Qos;
use crate::sink::{Channel, Clock};

/// A queued message.
#[derive(Debug, Clone, Copy)]
struct Stamped<T> {
    released: Instant,
    sequence: u32,
    message: T,
}

/// A topic of which every message is delivered: up to `N` are queued for the helper, `N` a power of
/// two.
///
/// The helper polls every 10 ms, every millisecond with transports, and later if a sink is slow. So
/// `N` determines how long that may take without a loss: `rate × pause`. If the queue is full, a
/// message is lost and counted: the sequence numbers
/// ([`Sample::sequence`](crate::Sample::sequence)) have a gap, and the [`Report`](crate::Report)
/// contains the number of losses.
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
/// let mut angles = ANGLES.publisher().expect("the publisher is free");
/// angles.publish(punctual::now(), Angles { pan: 0.25 });
/// ```
pub struct Topic<T, const N: usize> {
    name: &'static str,
    hz: Option<u32>,
    qos: Qos,
    waiting: Ring<Stamped<T>, N>,
    /// The number of the next message, while there is no publisher.
    next: AtomicU32,
    /// The number of losses. Written by the publisher.
    lost: AtomicU64,
    /// `true` if a publisher waits for a free slot.
    waits: AtomicBool,
    /// `true` if the messages are inputs of the app.
    pub(crate) is_input: AtomicBool,
}

impl<T, const N: usize> Topic<T, N> {
    /// Creates a topic with this name, which begins with `/`.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            hz: None,
            qos: Qos::DEFAULT,
            waiting: Ring::new(),
            next: AtomicU32::new(0),
            lost: AtomicU64::new(0),
            waits: AtomicBool::new(false),
            is_input: AtomicBool::new(false),
        }
    }

    /// Declares the number of messages published per second, which recordings contain.
    pub const fn hz(mut self, hz: u32) -> Self {
        self.hz = Some(hz);
        self
    }

    /// Sets the quality of service that transports offer, [`Qos::DEFAULT`] by default.
    ///
    /// ```
    /// use punctual_bridge::messages::Vector3;
    /// use punctual_bridge::{Durability, Qos, Topic};
    ///
    /// /// Nodes that are started later receive the last message.
    /// static HOME: Topic<Vector3, 2> =
    ///     Topic::new("/home").qos(Qos::DEFAULT.durability(Durability::TransientLocal).depth(1));
    /// ```
    pub const fn qos(mut self, qos: Qos) -> Self {
        self.qos = qos;
        self
    }

    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the number of lost messages.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl<T: Message, const N: usize> Topic<T, N> {
    /// Returns the publishing end. Dropping it makes it available again.
    ///
    /// # Errors
    /// [`Taken`] if the end is taken.
    pub fn publisher(&'static self) -> Result<Publisher<T, N>, Taken> {
        let end = self.waiting.producer()?;
        // Relaxed: the end of the ring is transferred with acquire and release.
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

/// The publishing end of a [`Topic`]: a local of one task.
pub struct Publisher<T: Message, const N: usize> {
    topic: &'static Topic<T, N>,
    end: RingProducer<'static, Stamped<T>, N>,
    sequence: u32,
}

impl<T: Message, const N: usize> Publisher<T, N> {
    /// Publishes a message with the time `released`: that of the job (`cx.released` in a periodic
    /// task), or [`punctual::now`].
    ///
    /// If the queue is full, the message is lost and counted.
    ///
    /// Real-time safety: wait-free; does not allocate, block or enter the kernel. Copies the
    /// message and 16 bytes. In virtual time
    /// ([`Bridge::virtual_time`](crate::Bridge::virtual_time)) it waits for a free slot instead.
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
        // The owner of this end is the only writer.
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

/// A topic with messages of any type, for a [`Bridge`](crate::Bridge). Implemented by [`Topic`].
pub trait Outgoing: private::Outgoing {}

impl<T: Message, const N: usize> Outgoing for Topic<T, N> {}

pub(crate) mod private {
    use super::{Channel, Source, Taken};

    pub trait Outgoing: Sync {
        fn channel(&self) -> Channel;
        fn connect(&'static self, waits: bool) -> Result<Box<dyn Source>, Taken>;
    }
}

/// A source of messages for the helper.
pub trait Source: Send {
    /// Passes queued messages to `take`: the release, in ns since 1970 by `clock`, the sequence
    /// number, and the bytes.
    fn drain(&mut self, encoder: &mut Encoder, clock: &Clock, take: &mut dyn FnMut(u64, u32, &[u8]));

    /// Returns the number of lost messages.
    fn lost(&self) -> u64;
}

impl<T: Message, const N: usize> private::Outgoing for Topic<T, N> {
    fn channel(&self) -> Channel {
        let is_input = self.is_input.load(Ordering::Relaxed);
        let (qos, description) = (self.qos, T::DESCRIPTION);
        Channel { topic: self.name, hz: self.hz, capacity: N, qos, description, is_input }
    }

    fn connect(&'static self, waits: bool) -> Result<Box<dyn Source>, Taken> {
        let end = self.waiting.consumer()?;
        self.waits.store(waits, Ordering::Relaxed);
        Ok(Box::new(Waiting { topic: self, end }))
    }
}

/// The helper's end of a topic.
struct Waiting<T: Message, const N: usize> {
    topic: &'static Topic<T, N>,
    end: RingConsumer<'static, Stamped<T>, N>,
}

impl<T: Message, const N: usize> Source for Waiting<T, N> {
    fn drain(&mut self, encoder: &mut Encoder, clock: &Clock, take: &mut dyn FnMut(u64, u32, &[u8])) {
        // At most as many as the capacity, so a task that publishes continuously does not delay the
        // other topics.
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
        // From now on no slots are freed.
        self.topic.waits.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::private::Outgoing as _;
    use super::*;
    use crate::messages::Vector3;

    #[test]
    fn drains_all_queued_messages_at_once() {
        static TOPIC: Topic<Vector3, 4> = Topic::new("/full");
        let mut publisher = TOPIC.publisher().unwrap();
        let mut source = TOPIC.connect(false).unwrap();
        for x in [0.0, 1.0, 2.0, 3.0, 4.0] {
            publisher.publish(Instant::from_ticks(0), Vector3 { x, y: 0.0, z: 0.0 });
        }
        let mut drained = vec![];
        let mut take = |_, sequence, _: &[u8]| drained.push(sequence);
        source.drain(&mut Encoder::default(), &Clock::of_virtual_time(0), &mut take);
        assert_eq!((drained, source.lost()), (vec![0, 1, 2, 3], 1));
    }
}
