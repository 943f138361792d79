//! Observation of jobs by Linux processes: the guard, profiles, marks in the kernel's trace, and
//! figures for other processes.

#[cfg_attr(not(feature = "guard"), allow(unreachable_pub, reason = "the guard is always off"))]
pub mod guard;
pub(crate) mod json;
pub(crate) mod markers;
pub(crate) mod metrics;
pub(crate) mod profile;

use crate::cells::{Cells, Observe};

impl Observe for Cells {
    #[inline]
    fn is_on(&self) -> bool {
        self.mark.is_on()
    }

    #[inline]
    fn before_spawn(&self) -> Option<u64> {
        profile::before_spawn(&self.profile)
    }

    #[inline]
    fn spawned(&self, when: Option<u64>) {
        profile::spawned(&self.profile, when);
    }

    fn spawned_in_time(&self) {
        profile::spawned_in_time(&self.profile);
    }
}
