//! A sound card whose sample clock is some ppm faster or slower than the machine's clock.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::card::{BUFFER_PERIODS, Card, CardError, FRAMES, Frame, LEAD_PERIODS, RATE, Reading};

const BUFFER_FRAMES: usize = BUFFER_PERIODS * FRAMES;
const START_FRAMES: usize = (LEAD_PERIODS + 1) * FRAMES;

/// Differences from an ideal card.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    /// Difference of the sample clock from the machine's, in parts per million; positive if fast.
    pub ppm: i64,
    /// Instant at which the card stops once, in nanoseconds.
    pub stops_at: Option<u64>,
    /// Instant at which the card is unplugged, in nanoseconds.
    pub unplugged_at: Option<u64>,
}

/// Frames that the card has played since its first start, for the tests.
pub type Played = Arc<Mutex<Vec<Frame>>>;

/// Locks the played frames.
pub fn lock(played: &Played) -> MutexGuard<'_, Vec<Frame>> {
    played.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a frame that the card records: a sawtooth on the left, and its inverse on the right.
#[must_use]
pub fn recorded(frame: u64) -> Frame {
    let sample = (frame % 20_000) as i16;
    [sample, -sample]
}

/// A simulated card.
#[derive(Debug)]
pub struct SimulatedCard {
    faults: Faults,
    input: VecDeque<Frame>,
    output: VecDeque<Frame>,
    /// Instant of the start in nanoseconds; `None` while the card does not play.
    start_ns: Option<u64>,
    /// Frames since the start.
    frames: u64,
    played: Option<Played>,
}

impl SimulatedCard {
    /// Creates a card that stores the frames it plays in `played`, if given.
    #[must_use]
    pub fn new(faults: Faults, played: Option<Played>) -> Self {
        let [input, output] = [(); 2].map(|()| VecDeque::with_capacity(BUFFER_FRAMES));
        Self { faults, input, output, start_ns: None, frames: 0, played }
    }

    /// Plays and records the frames until now.
    fn advance(&mut self) -> Result<(), CardError> {
        let now = now_ns();
        if self.faults.unplugged_at.is_some_and(|at| now >= at) {
            return Err(CardError::Failed(libc::ENODEV));
        }
        if self.faults.stops_at.is_some_and(|at| now >= at) {
            (self.faults.stops_at, self.start_ns) = (None, None);
        }
        let Some(start) = self.start_ns else { return Ok(()) };
        let target = frames_in(now - start, self.faults.ppm);
        while self.frames < target {
            let next = self.output.pop_front();
            let (Some(frame), true) = (next, self.input.len() < BUFFER_FRAMES) else {
                self.start_ns = None;
                return Ok(());
            };
            self.input.push_back(recorded(self.frames));
            self.frames += 1;
            if let Some(played) = &self.played {
                lock(played).push(frame);
            }
        }
        Ok(())
    }

    /// Returns an error if the card had been started and has stopped.
    fn check(&mut self) -> Result<(), CardError> {
        let was_playing = self.start_ns.is_some();
        self.advance()?;
        let has_stopped = was_playing && self.start_ns.is_none();
        if has_stopped { Err(CardError::Stopped) } else { Ok(()) }
    }
}

/// Returns the frames that a clock faster by `ppm` counts in this time.
fn frames_in(elapsed_ns: u64, ppm: i64) -> u64 {
    let frames_ns = i128::from(elapsed_ns) * i128::from(RATE) * i128::from(1_000_000 + ppm);
    (frames_ns / 1_000_000 / 1_000_000_000) as u64
}

fn now_ns() -> u64 {
    punctual::now().duration_since_epoch().as_nanos()
}

impl Card for SimulatedCard {
    fn prepare(&mut self) -> Result<(), CardError> {
        self.advance()?;
        self.input.clear();
        self.output.clear();
        (self.start_ns, self.frames) = (None, 0);
        Ok(())
    }

    fn read(&mut self, frames: &mut [Frame]) -> Result<usize, CardError> {
        self.check()?;
        let count = frames.len().min(self.input.len());
        frames.iter_mut().zip(self.input.drain(..count)).for_each(|(frame, input)| *frame = input);
        Ok(count)
    }

    fn write(&mut self, frames: &[Frame]) -> Result<usize, CardError> {
        self.check()?;
        let count = frames.len().min(BUFFER_FRAMES - self.output.len());
        self.output.extend(&frames[..count]);
        if self.start_ns.is_none() && self.output.len() >= START_FRAMES {
            self.start_ns = Some(now_ns());
        }
        Ok(count)
    }

    fn reading(&mut self) -> Option<Reading> {
        self.advance().ok()?;
        self.start_ns.map(|_| Reading { at: punctual::now(), frames: self.frames })
    }
}
