//! Jobs of SCHED_DEADLINE threads.

use super::{OpenJob, SchedulerSide, Stage};
use crate::event::{Event, SwitchOut};
use crate::jobs::cause::{Actor, blame};
use crate::jobs::config::Sleeps;
use crate::jobs::history::State;
use crate::jobs::job::ReleasedBy;
use crate::jobs::job::Reservation;

impl OpenJob {
    /// Sets its thread's reservation.
    pub(in crate::jobs) fn reserves(&mut self, reservation: Option<Reservation>) {
        self.reservation = reservation;
    }

    /// Returns whether a yield of its thread would have been recorded.
    pub(in crate::jobs) fn records_yields(&self) -> bool {
        self.known.yields && (self.calls || !self.known.calls_of_some)
    }

    /// Its thread yields and ends the job, unless that is `unsure`. Returns whether it is a job, as
    /// for a [sleep](Self::switched_out).
    pub(in crate::jobs) fn yields(&mut self, event: &Event, seen: (bool, bool), unsure: bool) -> bool {
        self.unsure.0 = unsure;
        self.wait = None;
        self.switched_out(event, SwitchOut::Gone, seen, Sleeps::EndJob)
    }

    /// Its thread has exhausted its runtime and leaves the CPU.
    pub(in crate::jobs) fn is_throttled(&mut self, event: &Event, seen: bool) {
        let before = self.job.preemptions;
        self.switched_out(event, SwitchOut::Runnable, (seen, false), Sleeps::EndJob);
        self.job.preemptions = before;
    }

    /// Its thread was throttled until now.
    pub(in crate::jobs) fn throttled_until(&mut self, time: u64) {
        let ns = time.saturating_sub(std::mem::replace(&mut self.ready_since, time));
        match self.stage {
            Stage::Idle => return,
            Stage::Released => blame(&mut self.job.jitter_causes, Actor::Throttling, ns),
            Stage::Active if self.wait.is_none() => {
                blame(&mut self.job.interference_causes, Actor::Throttling, ns);
            }
            Stage::Active => {}
        }
        (self.job.throttled, self.job.throttles) = (self.job.throttled + ns, self.job.throttles + 1);
    }

    /// The next job begins directly after one that ended late: it was due at the end of the period,
    /// if that is known.
    pub(in crate::jobs) fn renewed(&mut self, time: u64, due: Option<u64>, priority: i32) {
        self.release(time, priority);
        self.state = State::Ready;
        self.segments.begin(due.unwrap_or(time));
        (self.job.released, self.job.released_by) = (due.map(|due| (due, due)), ReleasedBy::Budget);
    }

    /// It starts at once, because its thread is still on the CPU.
    pub(in crate::jobs) fn goes_on(&mut self, event: &Event) {
        self.start(event.time, event.cpu, SchedulerSide::Out);
        (self.state, self.in_handler) = (State::Running, false);
    }
}
