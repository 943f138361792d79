//! The services for tasks on a board.

use punctual_core::{CurrentWorker, Duration, Instant};

use super::{has_begun, leave_idle, wait};
use crate::board::port::clock;
use crate::run::services::Services;
use crate::state::partition::PartitionState;
use crate::state::{Host, this_core, virtual_time};
use crate::stop::StopReason;

/// Stops the app that runs on the core, also in a handler.
pub(super) fn stop_here(reason: &'static StopReason) {
    if let Some(partition) = this_core::partition() {
        partition.runtime.stop(reason);
    }
}

impl Services for Host {
    #[inline]
    fn now() -> Instant {
        Instant::from_ticks(clock::now())
    }

    fn stop_all(reason: &'static StopReason) {
        stop_here(reason);
    }

    fn spend_here(duration: Duration) {
        if clock::is_virtual() {
            if let Some((partition, me)) = this_core::get() {
                virtual_time::spend(partition, me, duration);
            }
            return;
        }
        let executed = || this_core::partition().map_or(0, |partition| partition.executed());
        let (begin, before) = (clock::now(), executed());
        let duration = duration.as_ticks();
        while clock::now().saturating_sub(begin).saturating_sub(executed() - before) < duration {
            core::hint::spin_loop();
        }
    }

    fn is_idle(_: &'static PartitionState, me: CurrentWorker) -> bool {
        me.level() == 0 && has_begun()
    }

    fn wait_in_idle(partition: &'static PartitionState, _: CurrentWorker) {
        wait(partition);
        leave_idle(partition);
    }
}
