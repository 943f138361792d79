//! Profiles, which there are none of: nowhere could they be written.

/// The place of a task's profile.
#[derive(Debug)]
pub(crate) struct ProfileSlot;

/// Notes that a spawn is to come.
pub(crate) fn before_spawn(_: &ProfileSlot) -> Option<u64> {
    None
}

/// Notes a spawn.
pub(crate) fn spawned(_: &ProfileSlot, _: Option<u64>) {}

/// Notes a spawn that the clock will carry out.
pub(crate) fn spawned_in_time(_: &ProfileSlot) {}
