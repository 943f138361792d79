//! An open job: its transitions, and the accounting of its time.

mod account;
mod deadline;
mod segments;
mod waits;

use self::account::{SchedulerSide, Sums, Typical};
use self::segments::SegmentTrack;
use self::waits::FutexCall;
use super::blocking::{Blocking, WaitTarget};
use super::bounds::Bounds;
use super::cause::{Actor, blame};
use super::config::{Config, Release, Sleeps};
use super::disabled::DisabledSections;
use super::history::{Occupants, State};
use super::job::Reservation;
use super::job::{Flaw, Job, JobKind, Phase, ReleasedBy, Waker};
use super::known::{Certain, Known};
use crate::event::{Event, SwitchOut, Tid};

/// A wake-up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wake {
    pub(super) waker: Waker,
    /// Earliest and latest release, if a timer's expiry shows them.
    pub(super) nominal: Option<(u64, u64)>,
    pub(super) by: ReleasedBy,
    /// True if it may have been due earlier.
    pub(super) late: bool,
    /// True if a timer's expiry caused it, or may have caused it.
    pub(super) timer: bool,
}

/// Stage of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// There is no job.
    Idle,
    /// Waiting for its first switch.
    Released,
    /// Started.
    Active,
}

/// The job of a thread; reused for the thread's next one.
#[derive(Debug, Clone)]
pub(super) struct OpenJob {
    job: Job,
    stage: Stage,
    side: SchedulerSide,
    state: State,
    /// True if a handler runs on its CPU.
    in_handler: bool,
    /// True if a handler ran since the thread was last known to be outside the scheduler.
    interrupted: bool,
    sums: Sums,
    typical: Typical,
    /// Time not yet classified, since the thread was last known to be inside or outside the
    /// scheduler.
    window: u64,
    /// Time up to which the account is settled.
    settled_until: u64,
    /// Time since which it has been waiting for a CPU.
    ready_since: u64,
    futex: Option<FutexCall>,
    /// The current wait for a lock.
    wait: Option<Blocking>,
    /// Threads that inherited the thread's priority since it last tried to take a lock.
    boosted_holders: Vec<Tid>,
    /// Reason why the next release may not be a real one.
    next_flaw: Option<Flaw>,
    /// Maximum duration of a scheduler entry or exit.
    longest_schedule: u64,
    known: Known,
    /// True if the system calls of the thread are recorded.
    calls: bool,
    /// True if the job may have been released earlier than known.
    late: bool,
    /// True if the sleep that ended it may have been a wait for a lock.
    slept: bool,
    /// True if the job may have continued after its end, and true if it may have begun before its
    /// release.
    unsure: (bool, bool),
    /// True if the wake-up of its thread may have ended a wait for a lock: by another thread, which
    /// may have handed it over, or by a timer.
    from_wait: bool,
    /// True if its thread went into its last sleep in the middle of a job whose start was not
    /// recorded.
    continues: bool,
    /// True if the thread, or an unrecorded handler, spun for a lock.
    spun: bool,
    /// Reservation of its thread.
    reservation: Option<Reservation>,
    segments: SegmentTrack,
}

impl OpenJob {
    pub(super) fn new(actor: Actor, kind: JobKind, config: &Config) -> Self {
        Self {
            job: Job::empty(actor, kind),
            stage: Stage::Idle,
            side: SchedulerSide::Out,
            state: State::Unknown,
            in_handler: false,
            interrupted: false,
            sums: Sums::new(),
            typical: Typical::default(),
            window: 0,
            settled_until: 0,
            ready_since: 0,
            futex: None,
            wait: None,
            boosted_holders: Vec::new(),
            next_flaw: None,
            longest_schedule: config.longest_schedule.unwrap_or(u64::MAX),
            known: Known::of(&config.recorded),
            calls: false,
            late: false,
            slept: false,
            unsure: (false, false),
            from_wait: false,
            continues: false,
            spun: false,
            reservation: None,
            segments: SegmentTrack::new(config.segments),
        }
    }

    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.stage == Stage::Idle
    }

    #[inline]
    pub(super) fn is_released(&self) -> bool {
        self.stage == Stage::Released
    }

    #[inline]
    pub(super) fn is_active(&self) -> bool {
        self.stage == Stage::Active
    }

    /// Returns the app's task, if a mark named it.
    pub(super) fn task(&self) -> Option<u16> {
        self.job.task
    }

    pub(super) fn last_cpu(&self) -> u16 {
        self.job.last_cpu
    }

    /// Marks the job, if any, and the next one as flawed: the thread may be in the middle of a job
    /// or wait whose start was not recorded.
    pub(super) fn flaw(&mut self, flaw: Flaw) {
        self.next_flaw = Some(flaw);
        if !self.is_idle() {
            self.job.flaw.get_or_insert(flaw);
        }
    }

    /// Begins a job that waits for its first switch, or is about to be started by a mark.
    fn release(&mut self, time: u64, priority: i32) {
        let job = &mut self.job;
        (job.task, job.priority, job.highest) = (None, priority, priority);
        (job.released, job.released_by, job.woken, job.waker) = (None, ReleasedBy::Unseen, None, None);
        (job.suspended, job.migrations, job.preemptions, job.flaw) = (0, 0, 0, self.next_flaw.take());
        (job.disabled, job.nmi, job.started, job.ended_on) = (None, 0, true, None);
        job.jitter_causes.clear();
        job.interference_causes.clear();
        job.blockings.clear();
        job.blockings_left_out = 0;
        job.segments.clear();
        (job.throttled, job.throttles, job.bounded_switches) = (0, 0, 0);
        // Valid only while the thread is under SCHED_DEADLINE.
        job.reservation = self.reservation.filter(|_| priority < 0);
        self.sums = Sums::new();
        (self.window, self.settled_until, self.ready_since) = (0, time, time);
        self.segments.begin(time);
        (self.stage, self.side) = (Stage::Released, SchedulerSide::Out);
        (self.futex, self.wait) = (None, None);
        (self.late, self.slept, self.from_wait, self.spun) = (false, false, false, false);
        self.continues = false;
        // A job that may have continued may do so in this one.
        self.unsure = (false, self.unsure.0);
        self.boosted_holders.clear();
    }

    /// Sets the number of earlier threads with its thread's ID.
    pub(super) fn set_incarnation(&mut self, incarnations: u32) {
        self.job.incarnation = incarnations;
    }

    /// Its thread waits for no futex, or for none that is a lock, so unrecorded calls hide nothing.
    pub(super) fn waits_for_no_futex(&mut self) {
        (self.known.futexes, self.calls) = (true, true);
    }

    /// The system calls of its thread are recorded.
    #[inline]
    pub(super) fn has_calls(&mut self) {
        self.calls = true;
    }

    /// Starts the job, at its first switch or mark.
    fn start(&mut self, time: u64, cpu: u16, side: SchedulerSide) {
        self.segments.until(&mut self.job.segments, Phase::Jitter, time, cpu);
        (self.job.start, self.job.start_slack) = (time, 0);
        (self.job.first_cpu, self.job.last_cpu) = (cpu, cpu);
        (self.settled_until, self.stage, self.side) = (time, Stage::Active, side);
    }

    /// Its thread is woken, which releases a job or ends a sleep.
    pub(super) fn woken(&mut self, time: u64, wake: &Wake, priority: i32, release: Release) {
        self.settle(time);
        self.state = State::Ready;
        if self.is_active() {
            if let Some(wait) = self.wait.as_mut() {
                (wait.woken, wait.waker) = (Some(time), Some(wake.waker.actor));
            }
            self.ready_since = time;
            return;
        }
        // A wake-up before the thread slept still counts from its own time.
        self.release(time, priority);
        if wake.by == ReleasedBy::New {
            // A new thread has no past.
            self.job.flaw = None;
        }
        let released = wake.waker.time.min(time);
        let nominal = wake.nominal.filter(|_| release == Release::Nominal);
        self.segments.begin(nominal.map_or(released, |due| due.0));
        self.job.released = Some(nominal.unwrap_or((released, released)));
        let by_timer = nominal.is_some() && wake.by != ReleasedBy::Budget;
        self.job.released_by = if by_timer { ReleasedBy::Timer } else { wake.by };
        (self.job.woken, self.job.waker) = (Some(released), Some(wake.waker));
        self.late = wake.late && nominal.is_none();
        let woken = !matches!(wake.by, ReleasedBy::New | ReleasedBy::Budget);
        let by_thread = matches!(wake.waker.actor, Actor::Thread(tid) if tid != 0);
        self.from_wait = woken && (by_thread || wake.timer);
    }

    /// The job just released is the rest of one whose start was not recorded, after a wait for a
    /// lock.
    pub(super) fn continues_unobserved(&mut self) {
        self.continues = true;
    }

    /// Returns whether it is the rest of such a job.
    pub(super) fn continues(&self) -> bool {
        self.continues
    }

    /// Its thread gets a CPU without a recorded wake-up: there is a job, but its release is
    /// unknown.
    pub(super) fn release_unseen(&mut self, time: u64, priority: i32) {
        if self.is_idle() {
            self.release(time, priority);
            if self.known.wakeups {
                self.flaw(Flaw::Contradiction);
            }
        }
    }

    /// Its thread gets a CPU: at the event, or at `earliest` or later if the switch was not
    /// recorded. Returns whether that ends a wait, as it does if no event shows when the lock was
    /// acquired.
    pub(super) fn switched_in(
        &mut self,
        event: &Event,
        earliest: u64,
        moved: bool,
        in_handler: bool,
        sections: &DisabledSections,
    ) -> bool {
        let time = event.time;
        self.settle(time);
        self.state = State::Running;
        self.in_handler = in_handler;
        match self.stage {
            Stage::Idle => return false,
            Stage::Released => {
                self.start(time, event.cpu, SchedulerSide::Entering);
                self.job.start_slack = time - earliest;
                self.job.disabled = self.job.released.and_then(|(from, _)| sections.longest(from, time));
            }
            Stage::Active => {
                self.job.last_cpu = event.cpu;
                let target = self.wait.as_ref().map(|wait| wait.target);
                self.sums.may_have_run(time - earliest, target);
            }
        }
        self.job.bounded_switches += u32::from(earliest < time);
        self.job.migrations += u32::from(moved);
        match self.wait.as_ref().map(|wait| wait.target) {
            Some(WaitTarget::Kernel) => return true,
            Some(_) => {}
            None => self.side = SchedulerSide::Entering,
        }
        false
    }

    /// Its thread was found running without a switch to it.
    pub(super) fn found_running(&mut self, time: u64, cpu: u16) {
        self.settle(time);
        self.state = State::Running;
        self.start_unseen(time, cpu);
    }

    /// Starts the job if it was waiting for its first switch, which was missed.
    fn start_unseen(&mut self, time: u64, cpu: u16) {
        if self.is_released() {
            self.flaw(Flaw::Contradiction);
            self.start(time, cpu, SchedulerSide::Out);
        }
    }

    /// Its thread leaves the CPU; `seen` is true if it was known to run there. A thread that
    /// `marks` its jobs has no others. Returns whether that ends the job.
    pub(super) fn switched_out(
        &mut self,
        event: &Event,
        reason: SwitchOut,
        (seen, marks): (bool, bool),
        sleeps: Sleeps,
    ) -> bool {
        let time = event.time;
        if !seen {
            self.start_unseen(time, event.cpu);
        }
        self.settle_exit(time);
        self.state = if reason == SwitchOut::Runnable { State::Ready } else { State::Asleep };
        self.ready_since = time;
        self.job.last_cpu = event.cpu;
        let ends = match (self.stage, reason) {
            (Stage::Idle, _) | (Stage::Released, SwitchOut::Runnable) => return false,
            (Stage::Released, _) => false,
            (Stage::Active, SwitchOut::Runnable) => {
                self.job.preemptions += u32::from(self.wait.is_none());
                return false;
            }
            (Stage::Active, SwitchOut::Gone) => true,
            (Stage::Active, SwitchOut::Sleeping | SwitchOut::Uninterruptible) => {
                self.slept = self.ends_by_sleep(time, reason, sleeps);
                if !self.slept {
                    return false;
                }
                true
            }
        };
        let is_job = ends && !(marks && self.job.task.is_none());
        if !is_job {
            self.stage = Stage::Idle;
        }
        is_job
    }

    /// Its thread goes to sleep: it begins to wait for a lock, suspends itself, or ends the job.
    fn ends_by_sleep(&mut self, time: u64, reason: SwitchOut, sleeps: Sleeps) -> bool {
        if self.wait.is_none() {
            if self.futex.as_ref().is_some_and(|call| call.blocks) {
                self.futex_sleeps(time);
            } else if reason == SwitchOut::Uninterruptible {
                self.begin_wait(time, WaitTarget::Kernel);
            } else if sleeps == Sleeps::EndJob && self.job.task.is_none() {
                self.job.ended_on = self.futex_condition();
                return true;
            }
        }
        if let Some(wait) = self.wait.as_mut() {
            wait.slept = true;
        }
        false
    }

    /// Its thread is assigned to another CPU.
    pub(super) fn migrated(&mut self) {
        self.job.migrations += u32::from(!self.is_idle());
    }

    /// Its thread inherits a priority.
    pub(super) fn inherits(&mut self, priority: i32) {
        self.job.highest = self.job.highest.min(priority);
    }

    /// A mark begins a job of `task`. Returns whether the thread was woken for it, so that the job
    /// began when the thread was switched in.
    pub(super) fn claim_wake_up(&mut self, task: u16, nominal: Option<u64>) -> bool {
        let woken = self.is_active() && self.job.task.is_none();
        if !woken || nominal.is_some_and(|nominal| nominal > self.job.start) {
            return false;
        }
        (self.job.task, self.continues) = (Some(task), false);
        if let Some(nominal) = nominal {
            self.job.released = Some((nominal, nominal));
            self.job.released_by = ReleasedBy::Mark;
            (self.late, self.from_wait) = (false, false);
            self.segments.released(&mut self.job.segments, nominal);
        }
        true
    }

    /// A mark begins a job while the thread is awake: everything that ran on its CPU since the
    /// release delayed the job.
    pub(super) fn start_marked(
        &mut self,
        event: &Event,
        task: u16,
        nominal: Option<u64>,
        priority: i32,
        occupants: &Occupants,
    ) {
        let time = event.time;
        self.release(time, priority);
        self.segments.begin(nominal.unwrap_or(time));
        if let Some(nominal) = nominal {
            let causes = &mut self.job.jitter_causes;
            occupants.walk(nominal, time, |actor, from, to| {
                blame(causes, actor.unwrap_or(Actor::Unseen), to - from);
            });
        }
        self.start(time, event.cpu, SchedulerSide::Out);
        (self.state, self.in_handler) = (State::Running, false);
        self.job.task = Some(task);
        self.job.released = nominal.map(|nominal| (nominal, nominal));
        self.job.released_by = if nominal.is_some() { ReleasedBy::Mark } else { ReleasedBy::Unseen };
    }

    /// A job called by this one has ended. All of its time displaced this one, regardless of the
    /// thread's activity in it.
    pub(super) fn call_ended(&mut self, event: &Event, called: Option<u16>) {
        let took = self.called_until(event.time);
        blame(&mut self.job.interference_causes, called.map_or(Actor::Unseen, Actor::Task), took);
        self.job.last_cpu = event.cpu;
    }

    /// The job called by this one has run until now.
    pub(super) fn called_until(&mut self, time: u64) -> u64 {
        let took = self.elapse(time);
        self.sums.interference += took;
        (self.state, self.side, self.in_handler) = (State::Running, SchedulerSide::Out, false);
        self.segments.until(&mut self.job.segments, Phase::Interference, time, self.job.last_cpu);
        took
    }

    /// Returns the latest possible time at which it was opened.
    pub(super) fn open_since(&self) -> Option<u64> {
        let begun = if self.is_active() { self.job.start } else { self.settled_until };
        (!self.is_idle()).then(|| self.job.released.map_or(begun, |released| released.1))
    }

    /// Its thread was found running and has not slept since, so there is a job about which little
    /// is known.
    pub(super) fn runs_on(&mut self, since: u64, cpu: u16, priority: i32) {
        self.release(since, priority);
        self.start(since, cpu, SchedulerSide::Out);
        (self.known.futexes, self.slept) = (false, true);
    }

    /// Returns the job so far, although it has not ended.
    pub(super) fn cut(&mut self, number: u64, time: u64) -> &Job {
        self.flaw(Flaw::Cut);
        let (since, started) = (self.open_since(), self.is_active());
        if !started {
            let cpu = self.job.last_cpu;
            self.start(time, cpu, SchedulerSide::Out);
        }
        self.finish(number, time, self.job.last_cpu);
        let job = &mut self.job;
        job.started = started;
        let so_far = |bounds: Bounds| Bounds::at_least(bounds.lo().unwrap_or(0));
        if !started {
            job.jitter = so_far(job.jitter);
        }
        job.response = Bounds::at_least(time.saturating_sub(since.unwrap_or(time)));
        for term in [
            &mut job.window,
            &mut job.blocking,
            &mut job.interference,
            &mut job.execution,
            &mut job.overhead,
            &mut job.overhead_entry,
            &mut job.overhead_exit,
        ] {
            *term = so_far(*term);
        }
        &self.job
    }

    /// Ends the job and computes its terms. Call it once per job: the sums are not reset.
    pub(super) fn finish(&mut self, number: u64, time: u64, cpu: u16) -> &Job {
        debug_assert!(self.is_active(), "a job ends once, after its start");
        self.settle(time);
        // A mark ends a job outside the scheduler. A switch has emptied the window, which then
        // shows nothing of an entry.
        let (job, sums) = (&mut self.job, &mut self.sums);
        match self.side {
            SchedulerSide::Entering if self.window == 0 => {}
            SchedulerSide::Entering => {
                sums.add_ambiguous(self.window, self.longest_schedule, (true, false), &mut self.typical);
            }
            SchedulerSide::Out | SchedulerSide::Leaving => sums.execution += self.window,
        }
        (job.number, job.end, job.last_cpu) = (number, time.max(job.start), cpu);
        let window = job.end - job.start;
        let most = window + job.start_slack;
        let calls = self.known.futexes && (self.calls || !self.known.calls_of_some);
        // A job woken by another thread or a timer may be the rest of one, after a wait for a lock,
        // and so has no certain beginning.
        let rest = self.continues || self.unsure.1 || (!calls && self.from_wait);
        let certain = Certain {
            whole: !rest && (calls || !self.slept) && !self.unsure.0,
            locks: calls && self.known.contention && !self.spun,
            handlers: self.known.handlers(),
            wakeups: self.known.wakeups || sums.suspended == 0,
        };
        job.window = if certain.whole { Bounds::between(window, most) } else { Bounds::AtLeast(window) };
        job.jitter = job.released.map_or(Bounds::Unknown, |(lo, hi)| {
            let earliest = job.start.saturating_sub(job.start_slack);
            Bounds::between(earliest.saturating_sub(hi), job.start.saturating_sub(lo))
        });
        if rest {
            job.jitter = Bounds::Unknown;
        } else if self.late {
            job.jitter = Bounds::AtLeast(job.jitter.lo().unwrap_or(0));
        }
        job.response = job.jitter_and_window();
        sums.fill_in(job, certain);
        self.stage = Stage::Idle;
        (self.futex, self.wait) = (None, None);
        // The other equations defined W and R.
        if let Err(_equation) = self.job.check_parts_of_window() {
            self.job.flaw.get_or_insert(Flaw::Contradiction);
        }
        &self.job
    }
}
