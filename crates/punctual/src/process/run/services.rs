//! The services for tasks in a process.

use punctual_core::{CurrentWorker, Duration, Instant, Port};

use crate::port::linux::clock;
use crate::run::services::Services;
use crate::state::partition::PartitionState;
use crate::state::{Host, each_running, fault, thread, virtual_time};
use crate::stop::StopReason;

/// The maximum wait of `idle`: jobs preempt it by themselves, and the tick is for loops that poll.
const TICK: Duration = Duration::from_millis(10);

impl Services for Host {
    #[inline]
    fn now() -> Instant {
        match thread::get() {
            Some((partition, _)) => partition.core.port().now(),
            None => match thread::host_of_guest() {
                Some(runtime) => runtime.home.core.port().now(),
                None => clock::now(),
            },
        }
    }

    fn stop_all(reason: &'static StopReason) {
        each_running(|runtime| runtime.stop(reason));
    }

    fn spend_here(duration: Duration) {
        match thread::get() {
            Some((partition, worker)) if partition.core.port().is_virtual() => {
                virtual_time::spend(partition, worker, duration);
            }
            Some((partition, _)) if !partition.core.port().may_sleep() => {
                let now = || partition.core.port().now().as_ticks();
                let end = now().saturating_add(duration.as_ticks());
                while now() < end {
                    std::hint::spin_loop();
                }
            }
            _ => {
                let end = clock::thread_cpu_time().saturating_add(duration.as_ticks());
                while clock::thread_cpu_time() < end {
                    std::hint::spin_loop();
                }
            }
        }
    }

    fn is_idle(partition: &'static PartitionState, me: CurrentWorker) -> bool {
        // It is also the thread of `init`.
        let has_begun = match partition.core.port().is_virtual() {
            true => partition.runtime.host.turns.is_open(),
            false => partition.runtime.has_started(),
        };
        me.base() == 0 && me.running() == 0 && has_begun
    }

    fn wait_in_idle(partition: &'static PartitionState, me: CurrentWorker) {
        if partition.core.port().is_virtual() {
            virtual_time::wait_for_event(partition, me);
        } else if !partition.core.is_stopping() {
            let tick = partition.core.port().now() + TICK;
            partition.core.port().wait(&me, Some(tick), None);
        }
        if partition.core.is_stopping() {
            fault::leave_idle();
        }
    }
}
