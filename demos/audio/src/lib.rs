//! Sound, processed a period at a time on the sample clock of the sound card: a crate to copy for
//! audio, and for any device whose own clock sets the pace of data.
//!
//! A sound card plays 48 000 frames per second of *its* clock, which differs from the machine's by
//! up to some 100 ppm. An app on the machine's clock therefore drains or fills the card's buffer: a
//! card that is 100 ppm fast plays the [`LEAD_PERIODS`] of 1 ms in 20 s, and then it clicks. The
//! task `exchange` has `clock = CARD`: its releases are [`FRAMES`] frames apart on the sample
//! clock, so the fill of the buffers stays constant.
//!
//! Each job reads a period, processes it, writes it, and does not wait for the card. Every
//! [`READING_INTERVAL`] jobs it passes the number of played frames to the source of [`CARD`]. The
//! delay from input to output is [`DELAY_PERIODS`] periods. After an underrun the job restarts the
//! card, and the grid locks again; a card that is gone stops the app.
//!
//! [`simulated`] is a card with a fast or slow clock, [`kernel`] is one at `/dev/snd`. The latter
//! has been tested with the kernel's module `snd-dummy`, and has not been tried with hardware.

pub mod card;
#[cfg(all(target_pointer_width = "64", target_endian = "little"))]
pub mod kernel;
pub mod simulated;

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use card::{Card, CardError, FRAMES, Frame, LEAD_PERIODS};
use punctual::ExternalClock;

/// Period of the task: [`FRAMES`] at [`card::RATE`].
pub const PERIOD: punctual::Duration = punctual::Duration::from_millis(1);
/// Jobs between two readings of the sample clock. A reading is uncertain by a frame, of 21 µs; the
/// interval of 100 ms limits its effect on the drift to a few ppm. Cards that count in larger
/// steps, as those on USB, require a longer interval.
pub const READING_INTERVAL: u64 = 100;
/// Jobs after a start that do not read, so that the input buffer contains a period in spite of
/// drift and jitter.
const INPUT_PERIODS: u64 = 2;
/// Delay from input to output, in periods.
pub const DELAY_PERIODS: usize = LEAD_PERIODS + INPUT_PERIODS as usize;

/// The sample clock: the time in which the frames played since the last start are played.
pub static CARD: ExternalClock = ExternalClock::new();

/// Counts, and the failure of the card.
#[derive(Debug, Default)]
pub struct Counts {
    /// Periods exchanged with the card.
    pub periods: AtomicU64,
    /// Stops of the card because a period came too late.
    pub underruns: AtomicU64,
    /// Periods that the card has taken or provided in part, because they came too early.
    pub overruns: AtomicU64,
    /// Failure that stopped the app.
    pub failure: OnceLock<CardError>,
}

/// Processes a period: halves the volume.
fn process(frames: &mut [Frame; FRAMES]) {
    frames.as_flattened_mut().iter_mut().for_each(|sample| *sample /= 2);
}

/// Outcome of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exchange {
    Complete,
    Partial,
}

/// Reads, processes and writes a period: the job number `job` since the start of the card.
fn exchange_period(card: &mut dyn Card, job: u64) -> Result<Exchange, CardError> {
    let mut frames = [Frame::default(); FRAMES];
    let mut is_partial = false;
    if job == 0 {
        card.prepare()?;
        for _ in 0..LEAD_PERIODS {
            is_partial |= card.write(&frames)? < FRAMES;
        }
    }
    if job >= INPUT_PERIODS {
        is_partial |= card.read(&mut frames)? < FRAMES;
    }
    process(&mut frames);
    is_partial |= card.write(&frames)? < FRAMES;
    Ok(if is_partial { Exchange::Partial } else { Exchange::Complete })
}

/// The app.
#[punctual::app(main = false)]
pub mod app {
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;

    use punctual::ClockSource;

    use super::card::{Card, CardError};
    use super::{CARD, Counts, Exchange, PERIOD, READING_INTERVAL, exchange_period};

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        card: Box<dyn Card>,
        source: Option<ClockSource>,
        counts: Arc<Counts>,
    }

    /// Without `is_locked`, the clock has no readings, and the grid is that of the machine.
    #[init]
    fn init(_: init::Context, card: Box<dyn Card>, is_locked: bool, counts: Arc<Counts>) -> (Shared, Local) {
        let source = is_locked.then(|| CARD.source().expect("the previous run has dropped its source"));
        (Shared {}, Local { card, source, counts })
    }

    #[task(period = PERIOD, priority = 1, clock = CARD, local = [card, source, counts, job: u64 = 0])]
    fn exchange(cx: exchange::Context) {
        let exchange::LocalResources { card, source, counts, job, .. } = cx.local;
        let mut result = exchange_period(&mut **card, *job);
        if result == Err(CardError::Stopped) {
            counts.underruns.fetch_add(1, Relaxed);
            *job = 0;
            result = exchange_period(&mut **card, *job);
        }
        match result {
            Ok(outcome) => {
                counts.periods.fetch_add(1, Relaxed);
                counts.overruns.fetch_add((outcome == Exchange::Partial).into(), Relaxed);
            }
            Err(failure) => {
                let _ = counts.failure.set(failure);
                punctual::shutdown();
            }
        }
        *job += 1;
        if let Some(source) = source
            && job.is_multiple_of(READING_INTERVAL)
            && let Some(reading) = card.reading()
        {
            // A driver may return the same reading twice, which adds nothing.
            let _ = source.record(reading.at, reading.external_ns());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::Duration;

    use punctual::Config;
    use punctual::report::{ClockReport, ClockState};

    use super::*;
    use crate::simulated::{Faults, Played, SimulatedCard, lock, recorded};

    /// Time in which a clock drains the output buffer of a card that is 100 ppm fast.
    const DRAIN_SECS: u64 = 20;
    const FAST: Faults = Faults { ppm: 100, stops_at: None, unplugged_at: None };
    const SLOW: Faults = Faults { ppm: -100, ..FAST };

    /// Runs the app for this time in virtual time.
    fn run(faults: Faults, is_locked: bool, secs: u64, played: Option<Played>) -> (Arc<Counts>, ClockReport) {
        let counts = Arc::<Counts>::default();
        let config = Config::new().virtual_time().until(Duration::from_secs(secs));
        let card = Box::new(SimulatedCard::new(faults, played));
        let report = app::run(config, card, is_locked, Arc::clone(&counts)).unwrap();
        (counts, report.task("exchange").and_then(|task| task.clock).unwrap())
    }

    fn underruns_and_overruns(counts: &Counts) -> (u64, u64) {
        assert_eq!(counts.failure.get(), None);
        (counts.underruns.load(Relaxed), counts.overruns.load(Relaxed))
    }

    #[test]
    fn underruns_without_clock_once_drift_has_drained_buffer() {
        for (secs, underruns) in [(DRAIN_SECS - 1, 0), (DRAIN_SECS + 1, 1), (3 * DRAIN_SECS + 2, 3)] {
            let (counts, clock) = run(FAST, false, secs, None);
            assert_eq!(underruns_and_overruns(&counts), (underruns, 0), "{secs} s");
            assert_eq!((clock.state, clock.drift_ppb), (ClockState::Never, None));
        }
    }

    #[test]
    fn overruns_without_clock_if_card_is_slow() {
        let (counts, _) = run(SLOW, false, DRAIN_SECS, None);
        let (underruns, overruns) = underruns_and_overruns(&counts);
        assert!(underruns == 0 && overruns > 0, "{underruns} {overruns}");
    }

    #[test]
    fn neither_underruns_nor_overruns_with_clock() {
        for faults in [FAST, SLOW] {
            let (counts, clock) = run(faults, true, 11 * DRAIN_SECS, None);
            assert_eq!(underruns_and_overruns(&counts), (0, 0));
            assert_eq!((clock.state, clock.steps, clock.hold_overs), (ClockState::Locked, 0, 0));
            let error = clock.drift_ppb.unwrap() - 1_000 * faults.ppm;
            assert!(error.abs() < 5_000, "{clock:?}");
        }
    }

    #[test]
    fn delays_sound_by_constant_number_of_periods() {
        let played = Played::default();
        let (counts, _) = run(FAST, true, 5, Some(Arc::clone(&played)));
        assert_eq!(underruns_and_overruns(&counts), (0, 0));
        let played = lock(&played);
        assert!(played.len() > 4 * card::RATE as usize);
        let delay = DELAY_PERIODS * FRAMES;
        for (index, frame) in played.iter().enumerate() {
            let expected =
                index.checked_sub(delay).map(|index| recorded(index as u64).map(|sample| sample / 2));
            assert_eq!(*frame, expected.unwrap_or_default(), "{index}");
        }
    }

    #[test]
    fn restarts_card_and_locks_again_after_underrun() {
        let (counts, clock) = run(Faults { stops_at: Some(9_000_500_000), ..FAST }, true, 30, None);
        assert_eq!(underruns_and_overruns(&counts), (1, 0));
        assert_eq!((clock.state, clock.steps), (ClockState::Locked, 1));
    }

    #[test]
    fn stops_if_card_is_unplugged() {
        let (counts, _) = run(Faults { unplugged_at: Some(2_000_500_000), ..FAST }, true, 30, None);
        assert_eq!(counts.failure.get(), Some(&CardError::Failed(libc::ENODEV)));
        assert!((1_990..=2_002).contains(&counts.periods.load(Relaxed)), "{counts:?}");
    }
}
