//! The local timer: one for all cores, which interrupts one of them periodically. *ARM Quad A7
//! core*, 4.11.

use rpi_registers::Block;
use rpi_registers::interfaces::{ReadWriteable, Readable, Writeable};
use rpi_registers::local::{LOCAL_TIMER, Local};

/// Counts per microsecond, times ten: 38.4 MHz, both edges of the crystal's clock, which the
/// firmware cannot change. *ARM Quad A7 core*, 4.11. Not for the BCM2711: it has another crystal,
/// and its document does not name the frequency.
const COUNTS_PER_TEN_MICROS: u32 = 384;

/// The longest period, in microseconds.
pub const LONGEST: u32 = ((1 << 28) - 1) / COUNTS_PER_TEN_MICROS * 10;

/// Counts down, interrupts and starts again, without drift.
pub struct LocalTimer(&'static Local);

impl core::fmt::Debug for LocalTimer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "LocalTimer")
    }
}

// SAFETY: nothing else has the registers of this timer.
unsafe impl Send for LocalTimer {}

impl LocalTimer {
    /// Takes the registers. The timer interrupts core 0.
    pub fn new(block: Block<Local>) -> Self {
        let registers = block.leak();
        registers.local_timer.set(0);
        registers.local_interrupt_routing.set(0);
        Self(registers)
    }

    /// Makes the timer interrupt every `micros` microseconds, starting now. Must be called before
    /// its interrupt is enabled, because the enable bit is in the same register.
    ///
    /// # Panics
    /// If `micros` is 0 or more than [`LONGEST`].
    pub fn start(&mut self, micros: u32) {
        assert!((1..=LONGEST).contains(&micros), "the local timer takes 1 to {LONGEST} µs");
        let counts = (u64::from(micros) * u64::from(COUNTS_PER_TEN_MICROS) / 10) as u32;
        self.0.local_timer.modify(LOCAL_TIMER::RELOAD.val(counts) + LOCAL_TIMER::ENABLE::SET);
        // This also reloads the timer.
        self.0.local_timer_clear_reload.set(0b11 << 30);
    }

    /// Stops the timer. Must be called while its interrupt is disabled.
    pub fn stop(&mut self) {
        self.0.local_timer.modify(LOCAL_TIMER::ENABLE::CLEAR);
        self.clear();
    }

    /// Returns whether the period has ended since the interrupt was cleared.
    pub fn is_due(&self) -> bool {
        self.0.local_timer.is_set(LOCAL_TIMER::PENDING)
    }

    /// Clears the interrupt.
    pub fn clear(&mut self) {
        self.0.local_timer_clear_reload.set(1 << 31);
    }
}

#[cfg(test)]
mod tests {
    use rpi_registers::fake::Fake;

    use super::*;

    #[test]
    fn counts_for_requested_time() {
        let (block, memory) = Fake::<Local>::new();
        memory.set(0x24, 5);
        let mut timer = LocalTimer::new(block);
        assert_eq!(memory.get(0x24), 0, "core 0, by IRQ");
        memory.set(0x34, 1 << 29);
        timer.start(100);
        assert_eq!((memory.get(0x34), memory.get(0x38)), (1 << 28 | 1 << 29 | 3840, 0b11 << 30));
        memory.set(0x34, memory.get(0x34) | 1 << 31);
        assert!(timer.is_due());
        timer.clear();
        assert_eq!(memory.get(0x38), 1 << 31);
        timer.stop();
        assert_eq!(memory.get(0x34) & 1 << 28, 0);
    }

    #[test]
    #[should_panic(expected = "the local timer takes 1 to")]
    fn rejects_unrepresentable_period() {
        LocalTimer::new(Fake::<Local>::new().0).start(LONGEST + 1);
    }
}
