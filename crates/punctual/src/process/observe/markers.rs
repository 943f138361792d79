//! Marks of an app's tasks in the kernel's trace, and their numbers.
//!
//! There are no marks in virtual time, whose instants are unrelated to the kernel's trace, or for
//! jobs of polling partitions, whose thread does not enter the kernel. A background thread could
//! write them, but the kernel would record the time of the write, not of the job's start.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU16, Ordering};

use punctual_core::trace_marker;
use rustix::io::Errno;

use crate::config::Marks as Wanted;
use crate::port::linux::notice;
use crate::port::linux::trace_marker::{find, open, refused};
use crate::state::partition::{PartitionState, ThreadModel};
use crate::state::runtime::{Runtime, TaskInfo};

/// The marks of a run; off when dropped, which is after its threads have ended.
#[derive(Debug)]
pub(crate) struct Marks {
    runtime: &'static Runtime,
    marker: Option<OwnedFd>,
    /// Notes for the report and, on a failure, for a warning.
    notes: Vec<String>,
}

impl Marks {
    /// Enables marks for the jobs of `runtime`, none of which can run yet, as configured by
    /// `wanted`.
    pub(crate) fn new(runtime: &'static Runtime, wanted: &Wanted) -> Self {
        let opened = match wanted {
            Wanted::Off => return Self { runtime, marker: None, notes: Vec::new() },
            Wanted::On => find().and_then(open),
            Wanted::In(path) => open(path.clone()),
        };
        let (marker, path) = match opened {
            Ok(opened) => opened,
            Err(why) => return Self { runtime, marker: None, notes: vec![unmarked(&why)] },
        };
        let mut notes = Vec::new();
        for partition in runtime.partitions.iter().filter(|partition| !marks(partition)) {
            notes.push(format!(
                "the jobs of partition {} are not marked: its thread does not enter the kernel",
                partition.name
            ));
        }
        let mut marks = Self { runtime, marker: Some(marker), notes };
        marks.tasks(|number, task, marker| task.cells.mark.set(number, marker.as_raw_fd()));
        runtime.set_marks(true);
        let note = match marks.name() {
            Ok(()) => format!("each job is marked in the trace, by two writes to {}", path.display()),
            Err(error) => unmarked(&refused(&path, error)),
        };
        marks.notes.insert(0, note);
        marks
    }

    /// Writes the names of all tasks into the trace. Repeated periodically for recordings that
    /// begin later.
    ///
    /// # Errors
    /// Returns the error of the first write that fails: the trace accepts no marks at this time.
    pub(crate) fn name(&self) -> Result<(), Errno> {
        let mut written = Ok(());
        self.tasks(|number, task, marker| {
            let name = rustix::io::write(marker, &trace_marker::name(number, task.name));
            written = written.and(name.map(drop));
        });
        written
    }

    /// Returns whether there are marks.
    pub(crate) fn are_on(&self) -> bool {
        self.marker.is_some()
    }

    /// Returns the notes for the report.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Calls `act` for the tasks that mark, with their numbers.
    fn tasks(&self, mut act: impl FnMut(u16, TaskInfo, BorrowedFd<'_>)) {
        let Some(marker) = &self.marker else { return };
        let first = self.runtime.first_mark(numbers);
        for (number, task) in (first..=u16::MAX).zip(self.runtime.tasks) {
            if let Some(task) = task.info().filter(|task| marks(task.partition)) {
                act(number, task, marker.as_fd());
            }
        }
    }
}

impl Drop for Marks {
    fn drop(&mut self) {
        self.tasks(|_, task, _| task.cells.mark.clear());
        self.runtime.set_marks(false);
    }
}

/// Returns the note that jobs are not marked, after a warning.
fn unmarked(why: &str) -> String {
    let note = format!("jobs are not marked in the trace: {why}");
    notice::warn(format_args!("{note}"));
    note
}

fn marks(partition: &PartitionState) -> bool {
    partition.model != ThreadModel::Polling
}

/// Allocates numbers for `count` tasks, unique among the apps of this process. Those of other
/// processes probably differ, as far as sixteen bits allow: consecutive process IDs start 64 apart.
fn numbers(count: u16) -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let before = TAKEN.fetch_add(count, Ordering::Relaxed);
    let first = (std::process::id() as u16).wrapping_mul(64).wrapping_add(before);
    first.min(u16::MAX - count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_apps_are_apart_and_within_range() {
        let (a, b) = (numbers(10), numbers(10));
        assert!(a.abs_diff(b) >= 10 || a > u16::MAX - 20, "{a} {b}");
    }
}
