//! The cells from which tasks read parameters.

use std::fmt;

use punctual_sync::Taken;
use punctual_sync::shared::{Latest, LatestReader, LatestWriter, Reading};

use super::Parameters;

/// The parameters of an app, for up to `READERS` tasks: a `static`.
///
/// Each reader sees a consistent set of values that was checked and set as a whole. During a
/// change, one task may see the old values for the duration of a store while another sees the new
/// ones; values that must change at the same instant for several tasks have to be read by one of
/// them and passed on.
///
/// See the [module's documentation](super) for an example.
pub struct Tunable<P, const READERS: usize = 1> {
    /// One per reader, since a [`Latest`] has a single reader, whose slot makes reading wait-free.
    cells: [Latest<P>; READERS],
}

impl<P: Parameters, const READERS: usize> Tunable<P, READERS> {
    /// Creates parameters with default values.
    pub const fn new() -> Self {
        const { assert!(READERS > 0, "parameters need at least one reader") };
        Self { cells: [const { Latest::new(P::DEFAULT) }; READERS] }
    }

    /// Returns a reading end: a local of one task. Dropping it makes it available again.
    ///
    /// # Errors
    /// [`Taken`] if all `READERS` ends are taken.
    pub fn reader(&'static self) -> Result<TunableReader<P>, Taken> {
        self.cells.iter().find_map(|cell| cell.reader().ok()).map(TunableReader).ok_or(Taken)
    }

    /// Returns all writing ends.
    pub(super) fn writer(&'static self) -> Result<TunableWriter<P>, Taken> {
        self.cells.iter().map(Latest::writer).collect::<Result<_, Taken>>().map(TunableWriter)
    }
}

impl<P: Parameters, const READERS: usize> Default for Tunable<P, READERS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P, const READERS: usize> fmt::Debug for Tunable<P, READERS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tunable").field("readers", &READERS).finish_non_exhaustive()
    }
}

/// The reading end of a [`Tunable`], for a task.
pub struct TunableReader<P: Parameters>(LatestReader<'static, P>);

impl<P: Parameters> TunableReader<P> {
    /// Returns the newest values, and whether they are new to this reader.
    ///
    /// Real-time safety: wait-free; does not allocate, block or enter the kernel. Copies the
    /// struct.
    #[inline]
    pub fn read(&mut self) -> Reading<P> {
        self.0.read()
    }
}

impl<P: Parameters> fmt::Debug for TunableReader<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TunableReader").finish()
    }
}

/// Publishes to every reader.
pub(super) struct TunableWriter<P: Parameters>(Vec<LatestWriter<'static, P>>);

impl<P: Parameters> TunableWriter<P> {
    pub(super) fn write(&mut self, parameters: P) {
        self.0.iter_mut().for_each(|cell| cell.write(parameters));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Gains;
    use super::*;

    #[test]
    fn every_reader_sees_written_values() {
        static GAINS: Tunable<Gains, 2> = Tunable::new();
        let readers = [(); 2].map(|()| GAINS.reader().expect("two tasks may read"));
        assert!(GAINS.reader().is_err());
        let mut writer = GAINS.writer().expect("nobody else writes");
        let mut gains = Gains::DEFAULT;
        gains.pan.kp = 3.0;
        writer.write(gains);
        for mut reader in readers {
            let reading = reader.read();
            assert_eq!((reading.value, reading.is_new), (gains, true));
        }
    }
}
