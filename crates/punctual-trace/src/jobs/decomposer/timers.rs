//! Expiry times of timers, which are the due times of the jobs they release.

use super::cpu::Firing;
use super::{Decomposer, Sink};
use crate::event::Event;

/// Initial and maximum number of entries; the maximum takes 4 MB. Up to three quarters are used.
const MIN_PLACES: usize = 4096;
const MAX_PLACES: usize = 1 << 18;

/// Number of nearby timers considered for eviction.
const CANDIDATES: usize = 8;

/// With a larger difference, a timer's clock cannot be the trace's: no interrupt is served so late.
const SAME_CLOCK: u64 = 1_000_000_000;

/// A started timer.
#[derive(Debug, Clone, Copy, Default)]
struct Armed {
    /// Its address; 0 marks a free entry.
    timer: u64,
    expires: u64,
}

/// The expiry times of started timers.
///
/// A hash table with linear probing. It grows as timers are started, and a timer is removed on
/// expiry. A canceled timer stays until another timer reuses its memory, because not every
/// recording has an event for the cancellation. So such entries eventually fill the table, and a
/// new timer then evicts the nearby one with the earliest expiry.
#[derive(Debug)]
pub(super) struct Timers {
    slots: Box<[Armed]>,
    used: usize,
}

impl Timers {
    pub(super) fn new() -> Self {
        Self { slots: vec![Armed::default(); MIN_PLACES].into_boxed_slice(), used: 0 }
    }

    #[inline]
    pub(super) fn start(&mut self, timer: u64, expires: u64) {
        if timer == 0 {
            return;
        }
        let at = self.find(timer);
        let is_new = self.slots[at].timer == 0;
        if is_new && self.used >= self.slots.len() / 4 * 3 {
            return self.start_crowded(timer, expires);
        }
        self.used += usize::from(is_new);
        self.slots[at] = Armed { timer, expires };
    }

    /// Makes room first.
    #[cold]
    fn start_crowded(&mut self, timer: u64, expires: u64) {
        if self.slots.len() < MAX_PLACES {
            let larger = vec![Armed::default(); 2 * self.slots.len()].into_boxed_slice();
            for armed in std::mem::replace(&mut self.slots, larger) {
                if armed.timer != 0 {
                    let at = self.find(armed.timer);
                    self.slots[at] = armed;
                }
            }
        } else {
            let mask = self.slots.len() - 1;
            let slots = (0..=mask).map(|step| (self.place(timer) + step) & mask);
            let used = slots.filter(|&at| self.slots[at].timer != 0).take(CANDIDATES);
            if let Some(first) = used.min_by_key(|&at| self.slots[at].expires) {
                self.remove(first);
            }
        }
        self.start(timer, expires);
    }

    /// Removes a timer that expires now and returns its expiry time. It has to be started again
    /// before it can expire again.
    fn take(&mut self, timer: u64) -> Option<u64> {
        let at = self.find(timer);
        let Armed { timer: known, expires } = self.slots[at];
        if known == 0 {
            return None;
        }
        self.remove(at);
        Some(expires)
    }

    /// Returns the entry of a timer, or the free one for it. There is always a free entry.
    #[inline]
    fn find(&self, timer: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = self.place(timer);
        while self.slots[at].timer != 0 && self.slots[at].timer != timer {
            at = (at + 1) & mask;
        }
        at
    }

    /// Frees an entry and moves up those displaced by it.
    fn remove(&mut self, mut gap: usize) {
        let mask = self.slots.len() - 1;
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            if self.slots[at].timer == 0 {
                break;
            }
            // Its distance from its home entry, and from the gap.
            let from_home = at.wrapping_sub(self.place(self.slots[at].timer)) & mask;
            if from_home >= at.wrapping_sub(gap) & mask {
                self.slots[gap] = self.slots[at];
                gap = at;
            }
        }
        self.slots[gap] = Armed::default();
        self.used -= 1;
    }

    /// Timers are part of larger structures, so their addresses differ little in the lowest bits.
    #[inline]
    fn place(&self, timer: u64) -> usize {
        (timer.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - self.slots.len().trailing_zeros())) as usize
    }
}

impl Decomposer {
    /// Computes the due time of a timer. Its clock was read between the interrupt's arrival and
    /// this event, and showed `now`; so on the trace's clock, the timer was due before that reading
    /// by as much as `now` exceeds its expiry.
    pub(super) fn timer_expires(&mut self, event: &Event, timer: u64, now: u64, sink: Sink<'_>) {
        let (monotonic, expires) = (self.config.monotonic, self.timers.take(timer));
        self.counters.unknown_timers += u64::from(expires.is_none());
        let cpu = self.cpu(event.cpu);
        // Without an entry event of the interrupt, the reading was taken after the event before the
        // first of the timers that share it.
        if cpu.clock.0 != now {
            cpu.clock = (now, cpu.before);
        }
        let earliest = cpu.frames.last().map_or(cpu.clock.1, |frame| frame.entry);
        let due = expires.map(|expires| {
            let same = monotonic && now <= event.time && event.time - now < SAME_CLOCK;
            let late = now.saturating_sub(expires);
            if same {
                // The timer of a thread with slack may expire before the slack is used up, together
                // with others: it is due by then.
                (expires.min(now), expires.min(now))
            } else {
                (earliest.saturating_sub(late), event.time.saturating_sub(late))
            }
        });
        cpu.firing = Some(Firing { timer, due });
        if let (Some(frame), Some(due)) = (cpu.frames.last_mut(), due) {
            let before = |known: &(u64, u64)| known.0 <= due.0;
            frame.due = Some(frame.due.filter(before).unwrap_or(due));
        }
        if !self.budgets.unused() {
            self.budget_timer_expires(event, timer, due, sink);
        }
    }

    pub(super) fn timer_expired(&mut self, cpu: u16, timer: u64) {
        let cpu = self.cpu(cpu);
        if cpu.firing.is_some_and(|firing| firing.timer == timer) {
            cpu.firing = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spaced like the timers on the stacks of sleeping threads.
    fn address(n: u64) -> u64 {
        0xffff_c900_0000_3e48 + n * 0x4000
    }

    #[test]
    fn tracks_100000_timers() {
        let mut timers = Timers::new();
        (0..100_000).for_each(|n| timers.start(address(n), n));
        // Some of them are started once more, and an expired one is removed.
        (0..100_000).step_by(3).for_each(|n| timers.start(address(n), n + 1));
        for n in (0..100_000).rev() {
            let expected = if n % 3 == 0 { n + 1 } else { n };
            assert_eq!(timers.take(address(n)), Some(expected), "{n}");
            assert_eq!(timers.take(address(n)), None, "{n}");
        }
        assert_eq!(timers.used, 0);
    }

    #[test]
    fn bounds_memory_and_keeps_latest_timers() {
        let mut timers = Timers::new();
        // Their cancellation is not recorded.
        (0..400_000).for_each(|n| timers.start(address(n), n));
        assert_eq!((timers.slots.len(), timers.used), (MAX_PLACES, MAX_PLACES / 4 * 3));
        let known = (300_000..400_000).filter(|&n| timers.take(address(n)) == Some(n)).count();
        assert!(known >= 99_000, "{known}");
        assert_eq!(timers.take(0), None);
    }

    /// Compares with a map, using addresses that collide.
    #[test]
    fn agrees_with_reference_map() {
        let mut timers = Timers::new();
        let mut map = std::collections::HashMap::new();
        let mut seed = 1u64;
        for _ in 0..100_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let timer = 1 + (seed >> 33) % 3_000;
            if seed >> 63 == 0 {
                timers.start(timer, seed);
                map.insert(timer, seed);
            } else {
                assert_eq!(timers.take(timer), map.remove(&timer));
            }
            assert_eq!(timers.used, map.len());
        }
    }
}
