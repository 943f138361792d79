//! The system timer: 1 MHz, shared by all cores, with four compare registers. The ARM cores can
//! usually use two of them.

use embedded_hal::delay::DelayNs;
use rpi_registers::Block;
use rpi_registers::interfaces::{Readable, Writeable};
use rpi_registers::system_timer::SystemTimer;

/// Returns the time and waits, in steps of a microsecond. Can be copied freely.
#[derive(Clone, Copy)]
pub struct Timer(&'static SystemTimer);

// SAFETY: it only reads registers, and reading does not change them.
unsafe impl Send for Timer {}

/// A compare register, which interrupts at a given time.
pub struct Alarm<const N: usize>(&'static SystemTimer);

// SAFETY: each writes to its own register and clears its own bit by a write that affects no other.
unsafe impl<const N: usize> Send for Alarm<N> {}

impl core::fmt::Debug for Timer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Timer at {} µs", self.now())
    }
}

impl<const N: usize> core::fmt::Debug for Alarm<N> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Alarm {N}")
    }
}

/// Splits the timer. The VideoCore uses the compare registers 0 and 2: see
/// [`Timer::alarms_of_the_videocore`].
pub fn split(block: Block<SystemTimer>) -> (Timer, Alarm<1>, Alarm<3>) {
    let registers = block.leak();
    (Timer(registers), Alarm(registers), Alarm(registers))
}

impl Timer {
    /// Returns the other two compare registers.
    ///
    /// # Safety
    /// The VideoCore does not use them. Its firmware does unless configured otherwise; QEMU has no
    /// VideoCore. Called once.
    pub unsafe fn alarms_of_the_videocore(self) -> (Alarm<0>, Alarm<2>) {
        (Alarm(self.0), Alarm(self.0))
    }

    /// Returns the microseconds since power-on.
    pub fn now(self) -> u64 {
        now(self.0)
    }

    /// Waits until the counter has changed more than `micros` times, which takes at least `micros`
    /// microseconds.
    fn wait(self, micros: u32) {
        // Differences of the lower half are correct across its overflow. The first change may occur
        // at once.
        let begin = self.0.clo.get();
        while self.0.clo.get().wrapping_sub(begin) <= micros {
            core::hint::spin_loop();
        }
    }
}

/// Reads both halves of the counter consistently.
fn now(registers: &SystemTimer) -> u64 {
    loop {
        let (high, low) = (registers.chi.get(), registers.clo.get());
        if registers.chi.get() == high {
            return u64::from(high) << 32 | u64::from(low);
        }
    }
}

impl DelayNs for Timer {
    fn delay_ns(&mut self, ns: u32) {
        self.wait(ns.div_ceil(1000));
    }

    fn delay_us(&mut self, us: u32) {
        // Waits half the range of the lower half at a time.
        if us > 1 << 31 {
            self.wait(1 << 31);
        }
        self.wait(if us > 1 << 31 { us - (1 << 31) } else { us });
    }
}

impl<const N: usize> Alarm<N> {
    /// Interrupts in `micros` microseconds, at most 2³¹ and at least a few. The last call counts.
    ///
    /// The hardware compares for equality, so a time that has already passed would match only after
    /// 71 minutes. Such a time is moved until it lies ahead.
    pub fn set_after(&mut self, micros: u32) {
        let mut ahead = micros.clamp(2, 1 << 31);
        let begin = self.0.clo.get();
        loop {
            self.0.c[N].set(begin.wrapping_add(ahead));
            let passed = self.0.clo.get().wrapping_sub(begin);
            if passed < ahead {
                return;
            }
            ahead = passed.wrapping_add(4);
        }
    }

    /// Returns whether the time has come since the interrupt was cleared.
    pub fn is_due(&self) -> bool {
        self.0.cs.get() & 1 << N != 0
    }

    /// Clears the interrupt.
    pub fn clear(&mut self) {
        // Writing ones clears, so the write clears no other interrupt.
        self.0.cs.set(1 << N);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use rpi_registers::fake::Fake;

    use super::*;

    #[test]
    fn reads_both_halves() {
        let (block, memory) = Fake::<SystemTimer>::new();
        memory.set(0x04, 5);
        memory.set(0x08, 2);
        assert_eq!(split(block).0.now(), 2 << 32 | 5);
    }

    #[test]
    fn waits_full_duration_across_counter_overflow() {
        let (block, memory) = Fake::<SystemTimer>::new();
        let begin = u32::MAX - 20;
        memory.set(0x04, begin);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    memory.set(0x04, memory.get(0x04).wrapping_add(1));
                }
            });
            let mut timer = split(block).0;
            for wait in [|timer: &mut Timer| timer.delay_us(50), |timer: &mut Timer| timer.delay_ns(49_001)] {
                let begin = memory.get(0x04);
                wait(&mut timer);
                assert!(memory.get(0x04).wrapping_sub(begin) > 50);
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert!(memory.get(0x04).wrapping_sub(begin) > 100);
    }

    #[test]
    fn alarm_is_in_future_and_clears_its_own_bit() {
        let (block, memory) = Fake::<SystemTimer>::new();
        memory.set(0x04, u32::MAX);
        let (_timer, mut one, three) = split(block);
        one.set_after(100);
        assert_eq!(memory.get(0x10), 99);
        one.set_after(0);
        assert_eq!(memory.get(0x10), 1, "not now, which would be in 71 minutes");
        memory.set(0x00, 1 << 1 | 1 << 2);
        assert!(one.is_due() && !three.is_due());
        one.clear();
        assert_eq!(memory.get(0x00), 1 << 1);
    }
}
