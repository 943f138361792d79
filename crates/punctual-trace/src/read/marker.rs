//! What Punctual apps write into the trace: the start and end of jobs and the names of tasks.
//!
//! An app writes these bytes to `trace_marker_raw`. The first four say which, the others follow in the order of bytes of the
//! machine.
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

use super::Order;
use crate::event::Kind;

/// `PJ`, and what.
pub(crate) const START: u32 = 0x504a_0001;
pub(crate) const END: u32 = 0x504a_0002;
pub(crate) const NAME: u32 = 0x504a_0003;

/// Marks the start of a job of task number `task`, released at that time of `CLOCK_MONOTONIC`.
pub fn start(task: u16, released: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&START.to_ne_bytes());
    bytes[4..6].copy_from_slice(&task.to_ne_bytes());
    bytes[8..].copy_from_slice(&released.to_ne_bytes());
    bytes
}

/// Marks the end of a job of task number `task`.
pub fn end(task: u16) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&END.to_ne_bytes());
    bytes[4..6].copy_from_slice(&task.to_ne_bytes());
    bytes
}

/// Names task number `task`.
pub fn name(task: u16, name: &str) -> Vec<u8> {
    let mut bytes = NAME.to_ne_bytes().to_vec();
    bytes.extend(task.to_ne_bytes());
    bytes.extend((name.len() as u16).to_ne_bytes());
    bytes.extend(name.as_bytes());
    bytes
}

/// The names of tasks that a trace has.
#[derive(Debug, Default, Clone)]
pub struct Tasks {
    names: BTreeMap<u16, String>,
    changes: u64,
}

impl Tasks {
    /// The name of that task.
    pub fn get(&self, task: u16) -> Option<&str> {
        self.names.get(&task).map(String::as_str)
    }

    /// Every name.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &str)> {
        self.names.iter().map(|(&task, name)| (task, name.as_str()))
    }

    /// How often a task has been named.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Reads what was written after `id`: an event, or a name, which is kept. What others have written is neither.
    pub fn decode(&mut self, order: Order, id: u32, content: &[u8]) -> Option<Kind> {
        let task = order.u16(content, 0)?;
        match id {
            START => Some(Kind::JobStart { task, released: order.u64(content, 4)? }),
            END => Some(Kind::JobEnd { task }),
            NAME => {
                let length = usize::from(order.u16(content, 2)?);
                let name = content.get(4..)?.get(..length)?;
                self.names.insert(task, String::from_utf8_lossy(name).into_owned());
                self.changes += 1;
                None
            }
            _ => None,
        }
    }
}
