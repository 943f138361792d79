//! The fate of every job: each is run once, or rejected, or canceled, or dropped at the end; and
//! its arguments are dropped exactly once.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::checks::{self, Place, violation};

const RELAXED: Ordering = Ordering::Relaxed;

/// Maximum number of jobs of one round; spawners pause when it is reached.
const JOBS: usize = 1 << 20;

const EXECUTED: u8 = 1;
const REFUSED: u8 = 2;
const CANCELLED: u8 = 4;
const DROPPED: u8 = 8;

static FATES: [AtomicU8; JOBS] = [const { AtomicU8::new(0) }; JOBS];
static NEXT: AtomicU64 = AtomicU64::new(0);
static ENDED: AtomicU64 = AtomicU64::new(0);

/// The arguments of a job: a mark that records its fate.
#[derive(Debug)]
#[allow(unreachable_pub, reason = "the app's generated interface is `pub` by name")]
pub struct Job {
    id: u64,
    lane: usize,
    place: Option<Place>,
}

impl Job {
    /// Creates a job to be spawned at once.
    pub(crate) fn now(lane: usize) -> Option<Self> {
        let mut job = Self::later(lane)?;
        job.place = Some(checks::next_place(lane));
        Some(job)
    }

    /// Creates a job to be spawned for a later time.
    pub(crate) fn later(lane: usize) -> Option<Self> {
        // A few threads may pass the check at the same time.
        if NEXT.load(RELAXED) + 64 > JOBS as u64 {
            return None;
        }
        Some(Self { id: NEXT.fetch_add(1, RELAXED), lane, place: None })
    }

    fn set(&self, fate: u8) {
        let before = FATES[self.id as usize].fetch_or(fate, RELAXED);
        if before & !(DROPPED - 1) != 0 || (fate != DROPPED && before != 0) {
            violation(&format!("job {} of lane {}: {fate} after {before}", self.id, self.lane));
        }
    }

    /// The job starts.
    pub(crate) fn execute(self) {
        self.set(EXECUTED);
        if let Some(place) = self.place {
            checks::in_order(self.lane, place);
        }
    }

    /// The spawn returned it.
    pub(crate) fn refused(self) {
        self.set(REFUSED);
    }

    /// It was canceled before its time.
    pub(crate) fn cancelled(self) {
        self.set(CANCELLED);
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.set(DROPPED);
        ENDED.fetch_add(1, RELAXED);
    }
}

/// Returns the number of spawned jobs whose fate is open.
pub(crate) fn open() -> u64 {
    let ended = ENDED.load(RELAXED);
    NEXT.load(RELAXED).saturating_sub(ended)
}

/// Returns the numbers of some jobs whose fate is open.
pub(crate) fn some_open() -> Vec<u64> {
    let open = (0..NEXT.load(RELAXED)).filter(|&id| FATES[id as usize].load(RELAXED) == 0);
    open.take(10).collect()
}

/// Fates of the jobs of a round.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Count {
    pub(crate) executed: u64,
    pub(crate) refused: u64,
    pub(crate) cancelled: u64,
    /// Neither of these: dropped with the run.
    pub(crate) dropped: u64,
}

/// Closes the ledger of a round in which no thread spawns anymore, and opens it for the next.
pub(crate) fn close() -> Count {
    let mut count = Count::default();
    for id in 0..NEXT.swap(0, RELAXED) {
        let fate = FATES[id as usize].swap(0, RELAXED);
        if fate & DROPPED == 0 {
            violation(&format!("the arguments of job {id} were never dropped; its fate: {fate}"));
        }
        match fate & !DROPPED {
            EXECUTED => count.executed += 1,
            REFUSED => count.refused += 1,
            CANCELLED => count.cancelled += 1,
            _ => count.dropped += 1,
        }
    }
    ENDED.store(0, RELAXED);
    count
}
