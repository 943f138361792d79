//! Stub: boards have no file system to write a profile to.

/// Profile of a task.
#[derive(Debug)]
pub(crate) struct ProfileSlot;

/// Called before a spawn.
pub(crate) fn before_spawn(_: &ProfileSlot) -> Option<u64> {
    None
}

/// Called after a spawn.
pub(crate) fn spawned(_: &ProfileSlot, _: Option<u64>) {}

/// Called after a timed spawn.
pub(crate) fn spawned_in_time(_: &ProfileSlot) {}
