//! Interface to a sound card that records and plays at the same sample clock.

use punctual::Instant;

/// Samples of the left and the right channel at an instant.
pub type Frame = [i16; 2];

/// Frames per second.
pub const RATE: u32 = 48_000;
/// Frames per period.
pub const FRAMES: usize = 48;
/// Periods in each buffer of the card.
pub const BUFFER_PERIODS: usize = 4;
/// Periods of silence with which a start fills the output buffer, before the first period of the
/// app. They are the time by which the app may be late.
pub const LEAD_PERIODS: usize = 2;

/// Reason why a card does not read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    /// The output buffer ran empty, the input buffer ran full, or the system was suspended.
    #[error("the card has stopped because a period came too late; restart it")]
    Stopped,
    /// An error of the kernel, by its number.
    #[error("the card has failed: {}; reconnect it", std::io::Error::from_raw_os_error(*.0))]
    Failed(i32),
}

/// Progress of the sample clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Instant of the reading.
    pub at: Instant,
    /// Frames played since the last start.
    pub frames: u64,
}

impl Reading {
    /// Returns the time on the sample clock since the last start, in nanoseconds.
    #[must_use]
    pub fn external_ns(&self) -> u64 {
        (u128::from(self.frames) * 1_000_000_000 / u128::from(RATE)) as u64
    }
}

/// A sound card. No method waits for the card.
pub trait Card: Send {
    /// Prepares a card that has stopped or has never been started. It starts as soon as the output
    /// buffer contains [`LEAD_PERIODS`] periods and the first of the app.
    ///
    /// # Errors
    /// See [`CardError`].
    fn prepare(&mut self) -> Result<(), CardError>;

    /// Moves the oldest frames out of the input buffer, and returns their number: less than
    /// `frames.len()` if the buffer contains less.
    ///
    /// # Errors
    /// See [`CardError`].
    fn read(&mut self, frames: &mut [Frame]) -> Result<usize, CardError>;

    /// Appends frames to the output buffer, and returns their number: less than `frames.len()` if
    /// the buffer is full.
    ///
    /// # Errors
    /// See [`CardError`].
    fn write(&mut self, frames: &[Frame]) -> Result<usize, CardError>;

    /// Reads the sample clock; `None` while the card does not play.
    fn reading(&mut self) -> Option<Reading>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn external_time_of_period_is_a_millisecond() {
        let at = Instant::from_ticks(0);
        let external_ns = |frames| Reading { at, frames }.external_ns();
        assert_eq!([0, 48, 1, 48_000].map(external_ns), [0, 1_000_000, 20_833, 1_000_000_000]);
        // After 584 years, where the product with 10⁹ exceeds a `u64`.
        assert_eq!(external_ns(885_443_715_538_058), 18_446_744_073_709_541_666);
    }
}
