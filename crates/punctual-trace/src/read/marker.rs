//! Markers that Punctual apps write into the trace: starts and ends of jobs, and names of tasks.
//!
//! The format is that of [`punctual_core::trace_marker`]. Its functions are also exported here, for
//! programs that mark their own jobs.
//!
//! ```
//! use punctual_trace::event::Kind;
//! use punctual_trace::read::Order;
//! use punctual_trace::read::marker::{self, Tasks};
//!
//! let bytes = marker::start(3, 1_000_000);
//! let id = u32::from_ne_bytes(bytes[..4].try_into()?);
//! let mut tasks = Tasks::default();
//! let kind = tasks.decode(Order::NATIVE, id, &bytes[4..]);
//! assert_eq!(kind, Some(Kind::JobStart { task: 3, released: 1_000_000 }));
//! # Ok::<(), std::array::TryFromSliceError>(())
//! ```

use std::collections::BTreeMap;

use punctual_core::trace_marker::Mark;
pub use punctual_core::trace_marker::{OfflineJob, end, lost, name, offline_job, start};

use super::Order;
use crate::event::Kind;

/// The names of tasks in a trace.
#[derive(Debug, Default, Clone)]
pub struct Tasks {
    names: BTreeMap<u16, String>,
    changes: u64,
}

impl Tasks {
    /// Returns the name of a task.
    pub fn get(&self, task: u16) -> Option<&str> {
        self.names.get(&task).map(String::as_str)
    }

    /// Returns all names.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &str)> {
        self.names.iter().map(|(&task, name)| (task, name.as_str()))
    }

    /// Returns how many markers have named a task.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Reads the data written after `id`: an event, or a name, which is stored. Ignores data of
    /// other programs.
    pub fn decode(&mut self, order: Order, id: u32, content: &[u8]) -> Option<Kind> {
        match Mark::read(id, content, order == Order::Big)? {
            Mark::Start { task, released } => Some(Kind::JobStart { task, released }),
            Mark::End { task } => Some(Kind::JobEnd { task }),
            Mark::OfflineJob { task, cpu, job: OfflineJob { released, started, ended, preempted } } => {
                let least = |later: u64, earlier: u64| short(later.saturating_sub(earlier));
                let (jitter, window) = (least(started, released), least(ended, started));
                let preempted = short(preempted).min(window);
                Some(Kind::OfflineJob { task, cpu: near(cpu), started, jitter, window, preempted })
            }
            Mark::Lost { cpu, count } => Some(Kind::OfflineLost { cpu: near(cpu), count: short(count) }),
            Mark::Name { task, name } => {
                self.learn(task, &String::from_utf8_lossy(name));
                None
            }
        }
    }

    /// Two apps may use the same number. The task of a marker is then ambiguous, so both names are
    /// stored.
    fn learn(&mut self, task: u16, name: &str) {
        let known = self.names.entry(task).or_default();
        if known.is_empty() {
            known.push_str(name);
            self.changes += 1;
        } else if !known.split(OR).any(|known| known == name) && known.len() < MAX_NAMES {
            known.push_str(OR);
            known.push_str(name);
            self.changes += 1;
        }
    }
}

/// Returns the number, limited to the maximum.
fn short(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns the CPU, limited to the maximum.
fn near(cpu: u16) -> u8 {
    u8::try_from(cpu).unwrap_or(u8::MAX)
}

/// Separates the names of tasks with the same number.
const OR: &str = " or ";
/// The maximum bytes of the names of one number.
const MAX_NAMES: usize = 400;
