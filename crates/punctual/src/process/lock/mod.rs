//! Locks between threads of a process.

mod ceiling;
mod group;

pub use self::ceiling::{CeilingLocked, CeilingMutex};
pub use self::group::Group;
