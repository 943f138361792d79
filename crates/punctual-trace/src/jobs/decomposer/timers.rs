//! When timers were to expire, which is when the jobs they release were due.

use super::Decomposer;
use super::cpu::Firing;
use crate::event::Event;

/// How many armed timers are remembered. A newer one takes the place of an older one with the same remainder; a job whose
/// timer was forgotten counts from its wake-up.
const TIMERS: usize = 4096;

/// Beyond this a timer's clock cannot be the trace's: no interrupt is served so late.
const SAME_CLOCK: u64 = 1_000_000_000;

#[derive(Debug)]
pub(super) struct Timers(Box<[(u64, u64)]>);

impl Timers {
    pub(super) fn new() -> Self {
        Self(vec![(0, 0); TIMERS].into_boxed_slice())
    }

    #[inline]
    pub(super) fn start(&mut self, timer: u64, expires: u64) {
        self.0[Self::place(timer)] = (timer, expires);
    }

    fn expires(&self, timer: u64) -> Option<u64> {
        let (known, expires) = self.0[Self::place(timer)];
        (known == timer && timer != 0).then_some(expires)
    }

    /// Timers lie in larger structures, so their addresses differ little in the lowest bits.
    fn place(timer: u64) -> usize {
        (timer.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - TIMERS.trailing_zeros())) as usize
    }
}

impl Decomposer {
    /// Works out when a timer was due. Its clock was read after the interrupt came and before this event, and showed
    /// `now`; so on the trace's clock it was due as much before that reading as `now` is past its expiry.
    pub(super) fn timer_expires(&mut self, event: &Event, timer: u64, now: u64) {
        let (monotonic, expires) = (self.config.monotonic, self.timers.expires(timer));
        let cpu = self.cpu(event.cpu);
        // Without an event of the interrupt's entry, the reading lies after the event before the first of the timers that
        // share it.
        if cpu.clock.0 != now {
            cpu.clock = (now, cpu.before);
        }
        let earliest = cpu.frames.last().map_or(cpu.clock.1, |frame| frame.entry);
        let due = expires.map(|expires| {
            let same = monotonic && now <= event.time && event.time - now < SAME_CLOCK;
            let late = now.saturating_sub(expires);
            if same {
                (expires.min(event.time), expires.min(event.time))
            } else {
                (earliest.saturating_sub(late), event.time.saturating_sub(late))
            }
        });
        cpu.firing = Some(Firing { timer, due });
        if let (Some(frame), Some(due)) = (cpu.frames.last_mut(), due) {
            let before = |known: &(u64, u64)| known.0 <= due.0;
            frame.due = Some(frame.due.filter(before).unwrap_or(due));
        }
    }

    pub(super) fn timer_expired(&mut self, cpu: u16, timer: u64) {
        let cpu = self.cpu(cpu);
        if cpu.firing.is_some_and(|firing| firing.timer == timer) {
            cpu.firing = None;
        }
    }
}
