//! SCHED_DEADLINE reservations of threads. No event contains them, so the kernel is polled while
//! the threads run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use punctual_files::Directory;

use punctual_process::scheduling::Scheduling;

use super::error::RecordError;
use super::filter::{all_threads, threads_of};
use crate::event::Tid;
use crate::jobs::Reservation;

/// The polling interval for the threads of the traced processes.
pub(super) const EVERY: Duration = Duration::from_millis(50);

/// The polling interval for all other threads, and the maximum fraction of a CPU for it if there
/// are many.
const EVERY_OTHER: Duration = Duration::from_millis(200);
const SHARE: u32 = 200;

/// Returns the current reservation of a thread, if it is under SCHED_DEADLINE.
#[must_use]
pub fn reservation(thread: Tid) -> Option<Reservation> {
    // A thread that has ended has released its reservation.
    Scheduling::of(thread.cast_signed()).ok()?.reservation()
}

/// The observed reservations.
#[derive(Debug, Default)]
pub(super) struct Reservations {
    processes: Vec<Tid>,
    known: BTreeMap<Tid, Reservation>,
    /// The time and duration of the last poll of all threads.
    last_sample: Option<(Instant, Duration)>,
}

impl Reservations {
    /// Creates an empty set; these processes are polled more often than others.
    pub(super) fn new(processes: &[Tid]) -> Self {
        Self { processes: processes.to_vec(), ..Self::default() }
    }

    /// Polls the threads of the traced processes, and all threads if their interval has passed or
    /// for the `last` poll. Returns whether anything has changed.
    pub(super) fn sample(&mut self, last: bool) -> bool {
        let due = |(at, took): (Instant, Duration)| at.elapsed() >= EVERY_OTHER.max(took * SHARE);
        if last || self.last_sample.is_none_or(due) {
            let start = Instant::now();
            let news = self.take(all_threads().map(|(thread, _)| thread));
            self.last_sample = Some((start, start.elapsed()));
            return news;
        }
        let threads: Vec<_> = self.processes.iter().flat_map(|&process| threads_of(process)).collect();
        self.take(threads)
    }

    fn take(&mut self, threads: impl IntoIterator<Item = Tid>) -> bool {
        let mut news = false;
        for thread in threads {
            if let Some(reserved) = reservation(thread) {
                news |= self.known.insert(thread, reserved) != Some(reserved);
            }
        }
        news
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Tid, Reservation)> {
        self.known.iter().map(|(&thread, &reserved)| (thread, reserved))
    }

    /// Returns a line for each thread, in the format of capture directories.
    pub(super) fn lines(&self) -> String {
        let line = |(thread, Reservation { runtime, deadline, period })| {
            format!("{thread} {runtime} {deadline} {period}\n")
        };
        self.iter().map(line).collect()
    }
}

/// Name in the capture directory.
const FILE: &str = "saved_reservations";

/// Polls at an interval, and writes the reservations to a file of the capture directory.
pub(super) fn keep(
    mut seen: Reservations,
    directory: Arc<Directory>,
) -> impl FnMut(bool) -> Result<u64, RecordError> {
    move |last| {
        if seen.sample(last) {
            let written = directory.write(Path::new(FILE), seen.lines().as_bytes());
            let path = directory.path();
            written.map_err(|error| RecordError::output(path, &path.join(FILE), error))?;
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_no_reservation_of_ordinary_thread() {
        assert_eq!(reservation(std::process::id()), None);
        assert_eq!(reservation(u32::MAX), None);
    }
}
