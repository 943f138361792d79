//! The local timer: one for all cores, which interrupts one of them again and again. *ARM Quad A7 core*, 4.11.

use rpi_registers::Block;
use rpi_registers::interfaces::{ReadWriteable, Readable, Writeable};
use rpi_registers::local::{LOCAL_TIMER, Local};

/// Counts for each microsecond, times ten: 38.4 MHz, twice that of the crystal. On a Raspberry Pi 4 it is more, unless set so.
const COUNTS_PER_TEN_MICROS: u32 = 384;

/// The longest period, in microseconds.
pub const LONGEST: u32 = ((1 << 28) - 1) / COUNTS_PER_TEN_MICROS * 10;

/// Counts down, interrupts and begins again, without drift.
pub struct LocalTimer(&'static Local);

impl core::fmt::Debug for LocalTimer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "LocalTimer")
    }
}

// SAFETY: nobody else has the registers of this timer.
unsafe impl Send for LocalTimer {}

impl LocalTimer {
    /// Takes the registers. It interrupts core 0.
    pub fn new(block: Block<Local>) -> Self {
        let registers = block.leak();
        registers.local_timer.set(0);
        registers.local_interrupt_routing.set(0);
        Self(registers)
    }

    /// Has it interrupt every so many microseconds, from now on. Before its interrupt is enabled, since that is a bit of the same
    /// register.
    ///
    /// # Panics
    /// If it is 0 or more than [`LONGEST`].
    pub fn start(&mut self, micros: u32) {
        assert!((1..=LONGEST).contains(&micros), "the local timer takes 1 to {LONGEST} µs");
        let counts = (u64::from(micros) * u64::from(COUNTS_PER_TEN_MICROS) / 10) as u32;
        self.0.local_timer.modify(LOCAL_TIMER::RELOAD.val(counts) + LOCAL_TIMER::ENABLE::SET);
        // Reloads it, too.
        self.0.local_timer_clear_reload.set(0b11 << 30);
    }

    /// Has it stop. When its interrupt is not enabled.
    pub fn stop(&mut self) {
        self.0.local_timer.modify(LOCAL_TIMER::ENABLE::CLEAR);
        self.clear();
    }

    /// Whether it has come to its end since it was cleared.
    pub fn is_due(&self) -> bool {
        self.0.local_timer.is_set(LOCAL_TIMER::PENDING)
    }

    /// Ends its interrupt.
    pub fn clear(&mut self) {
        self.0.local_timer_clear_reload.set(1 << 31);
    }
}

#[cfg(test)]
mod tests {
    use rpi_registers::fake::Fake;

    use super::*;

    #[test]
    fn counts_as_long_as_it_is_told() {
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
    fn refuses_a_period_that_does_not_fit() {
        LocalTimer::new(Fake::<Local>::new().0).start(LONGEST + 1);
    }
}
