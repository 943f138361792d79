//! The receiver's private part of the queue: a list of immediate items and a heap of scheduled
//! ones.
//!
//! It refers to nodes by index and needs only their times, so its order can be tested without them.

/// A scheduled item. Ordered by time, then by arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Scheduled {
    time: u64,
    arrival: u64,
    node: u32,
}

#[derive(Clone, Copy, Debug)]
struct Immediate {
    /// The sending time, or 0 if no item was scheduled then.
    sent: u64,
    node: u32,
}

/// Up to `N` items that have arrived and have not been received.
#[derive(Debug)]
pub(super) struct Pending<const N: usize> {
    /// A ring: `count` items from `first` on.
    immediate: [Immediate; N],
    first: usize,
    count: usize,
    /// A binary heap of `timers` items, the earliest at 0.
    scheduled: [Scheduled; N],
    timers: usize,
    arrivals: u64,
}

/// The next item to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The item in this node, now.
    Ready(u32),
    /// The first scheduled item, once its time in ns has come.
    At(u64),
    Nothing,
}

impl<const N: usize> Pending<N> {
    pub(super) const fn new() -> Self {
        Self {
            immediate: [Immediate { sent: 0, node: 0 }; N],
            first: 0,
            count: 0,
            scheduled: [Scheduled { time: 0, arrival: 0, node: 0 }; N],
            timers: 0,
            arrivals: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.count + self.timers
    }

    /// Returns `true` if there are no items.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn has_scheduled(&self) -> bool {
        self.timers > 0
    }

    /// Adds an item that is ready, behind all of its kind.
    #[inline]
    pub(super) fn push_immediate(&mut self, node: u32, sent: u64) {
        let place = self.first + self.count;
        self.immediate[if place < N { place } else { place - N }] = Immediate { sent, node };
        self.count += 1;
    }

    /// Adds an item that is ready at `time`.
    pub(super) fn push_scheduled(&mut self, node: u32, time: u64) {
        let item = Scheduled { time, arrival: self.arrivals, node };
        self.arrivals += 1;
        let mut at = self.timers;
        self.timers += 1;
        while at > 0 && item < self.scheduled[(at - 1) / 2] {
            self.scheduled[at] = self.scheduled[(at - 1) / 2];
            at = (at - 1) / 2;
        }
        self.scheduled[at] = item;
    }

    /// Removes the next item if it is ready; calls `now` only if that depends on the time.
    #[inline]
    pub(super) fn next(&mut self, now: impl FnOnce() -> u64) -> Next {
        if self.count > 0 {
            let Immediate { sent, node } = self.immediate[self.first];
            // A sending time of 0 means before every currently scheduled item.
            if self.timers > 0 && sent != 0 && self.scheduled[0].time <= sent {
                return Next::Ready(self.pop_scheduled());
            }
            self.first = if self.first + 1 < N { self.first + 1 } else { 0 };
            self.count -= 1;
            return Next::Ready(node);
        }
        if self.timers == 0 {
            return Next::Nothing;
        }
        let time = self.scheduled[0].time;
        if time <= now() { Next::Ready(self.pop_scheduled()) } else { Next::At(time) }
    }

    fn pop_scheduled(&mut self) -> u32 {
        let node = self.scheduled[0].node;
        self.timers -= 1;
        let last = self.scheduled[self.timers];
        let mut at = 0;
        loop {
            let left = 2 * at + 1;
            if left >= self.timers {
                break;
            }
            let right = left + 1;
            let earlier = if right < self.timers && self.scheduled[right] < self.scheduled[left] {
                right
            } else {
                left
            };
            if last <= self.scheduled[earlier] {
                break;
            }
            self.scheduled[at] = self.scheduled[earlier];
            at = earlier;
        }
        self.scheduled[at] = last;
        node
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn drain<const N: usize>(pending: &mut Pending<N>, now: u64) -> Vec<u32> {
        std::iter::from_fn(|| match pending.next(|| now) {
            Next::Ready(node) => Some(node),
            _ => None,
        })
        .collect()
    }

    #[test]
    fn delivers_immediate_items_in_order_around_ring() {
        let mut pending = Pending::<3>::new();
        for round in 0..5 {
            pending.push_immediate(round, 0);
            pending.push_immediate(round + 10, 0);
            assert_eq!(drain(&mut pending, 0), [round, round + 10]);
        }
    }

    #[test]
    fn scheduled_items_by_time_then_arrival() {
        let times = [7, 3, 9, 3, 7, 1, 3, 8, 1];
        let mut pending = Pending::<9>::new();
        for (node, time) in times.into_iter().enumerate() {
            pending.push_scheduled(node as u32, time);
        }
        let mut expected: Vec<u32> = (0..9).collect();
        expected.sort_by_key(|&node| times[node as usize]);
        assert_eq!(drain(&mut pending, 9), expected);
        assert_eq!(pending.next(|| 9), Next::Nothing);
    }

    #[test]
    fn delivers_simultaneous_items_in_order() {
        let mut pending = Pending::<8>::new();
        for node in (0..8).rev() {
            pending.push_scheduled(node, 1);
        }
        assert_eq!(drain(&mut pending, 1), [7, 6, 5, 4, 3, 2, 1, 0]);
    }

    #[test]
    fn scheduled_items_in_every_order() {
        const N: u32 = 7;
        for mut number in 0..(1..=N).product() {
            let mut times: Vec<u32> = (0..N).collect();
            let mut pending = Pending::<{ N as usize }>::new();
            while !times.is_empty() {
                let count = times.len() as u32;
                let time = times.remove((number % count) as usize);
                number /= count;
                pending.push_scheduled(time, time.into());
            }
            assert_eq!(drain(&mut pending, 9), [0, 1, 2, 3, 4, 5, 6]);
        }
    }

    #[test]
    fn item_is_ready_exactly_at_its_time() {
        let mut pending = Pending::<2>::new();
        pending.push_scheduled(4, 10);
        assert_eq!(pending.next(|| 9), Next::At(10));
        assert_eq!(pending.next(|| 10), Next::Ready(4));
    }

    #[test]
    fn earlier_immediate_items_precede_scheduled_ones() {
        let mut pending = Pending::<2>::new();
        pending.push_immediate(0, 0);
        pending.push_scheduled(1, 0);
        assert_eq!(drain(&mut pending, 0), [0, 1]);
    }

    #[test]
    fn overdue_item_keeps_time_order() {
        let mut pending = Pending::<8>::new();
        pending.push_immediate(0, 0);
        pending.push_scheduled(1, 50);
        pending.push_immediate(2, 40);
        pending.push_immediate(3, 60);
        pending.push_scheduled(4, 70);
        pending.push_immediate(5, 70);
        assert_eq!(drain(&mut pending, 100), [0, 2, 1, 3, 4, 5]);
    }
}
