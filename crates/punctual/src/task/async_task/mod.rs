//! Async tasks: futures that are polled under the dispatch rules of their level, and the events
//! they can wait for.
//!
//! An `async fn` task occupies its level only while it is polled; between two polls it is a value
//! in a static and other jobs of its level run. A wake queues it like a spawn queues a job, and a
//! wake from below polls it immediately. There is one instance at a time; once it has completed it
//! can be spawned again.
//!
//! Nothing here allocates: the future is in the task's static, its wakers are pointers to it,
//! timers are slots of its level (as many as its [`waits`](macro@crate::app#keys-of-task)), and
//! waits for descriptors as many slots of the app.

mod delay;
mod due;
mod future;
#[cfg(feature = "std")]
mod readiness;
mod ticker;
mod timers;

use core::cell::{Cell, UnsafeCell};
use core::marker::PhantomData;
use core::mem::{self, ManuallyDrop, MaybeUninit};
use core::task::{Context, RawWaker, RawWakerVTable, Waker};

use punctual_core::{Activation, Arguments, ConstLevel, CurrentWorker, Level, PackedStamp, Popped, Stamp};

pub use self::delay::{Delay, Timeout, TimeoutError, delay, delay_until, timeout_after, timeout_at};
pub use self::future::{OfUnsent, Place, future_drop, future_place_local, future_poll, future_size};
#[cfg(feature = "std")]
pub use self::readiness::{Readiness, readable, writable};
pub use self::ticker::{AwaitsTicker, Tick, Ticker, every};
pub use self::timers::Timers;
use self::timers::TimersOfTask;
use crate::cells::Observe;
use crate::report::TaskReport;
use crate::state::partition::PartitionState;
use crate::state::runtime::{Registered, TaskInfo};
use crate::state::{Host, Platform};
use crate::stop::Culprit;
use crate::task::body::{Body, Release, stamp_any};
use crate::task::job::{WORD_CHECKS_JOBS, end_slow, execute, execute_plain, is_started_instrumented};
use crate::task::monitor::Monitor;
use crate::task::release::{AbortOnUnwind, Refusal};
use crate::task::spawn_error::{FullTask, SpawnError};

/// The parts of an async task that stay on the one thread that runs its level, and so need not be
/// `Send`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NonSend {
    /// Nothing: its level is not local.
    Nothing,
    /// Its future: its level is local.
    Future,
    /// Its arguments as well: it is a local task, which only tasks of its level spawn.
    Everything,
}

/// The level of an async task that is woken.
struct WakeLevelOf<B>(PhantomData<B>);

impl<B: Body> ConstLevel for WakeLevelOf<B> {
    const NUMBER: u8 = B::LEVEL;
    // A wake has about as many instructions with an atomic as with a biased word.
    const IS_PLAIN_FIRST: bool = true;
}

/// Properties of an async task that the generated code declares in addition to its [`Body`], whose
/// job is a poll.
pub trait AsyncBody: Body<Args = ()> {
    /// The arguments of the task beyond the context: none, one, or a tuple.
    type Message: 'static;
    /// The parts of it that stay on one thread.
    const NON_SEND: NonSend;

    /// Creates the future.
    ///
    /// # Safety
    /// `storage` is as for [`Place::future`](Place::future), or if the future stays, as for
    /// [`future_place_local`]. The resources are filled, and there is no
    /// other instance of the task. `message` points to the message, which is not used again.
    unsafe fn make(storage: *mut u8, message: *mut Self::Message);

    /// Polls the future; returns whether it has completed.
    ///
    /// # Safety
    /// As for [`future_poll`], after [`make`](Self::make); the calling thread
    /// runs a job of the task's level.
    unsafe fn poll(storage: *mut u8, cx: &mut Context<'_>) -> bool;

    /// Drops the future.
    ///
    /// # Safety
    /// As for [`future_drop`], after [`make`](Self::make).
    unsafe fn drop(storage: *mut u8);
}

impl NonSend {
    const fn future(self) -> bool {
        !matches!(self, Self::Nothing)
    }
}

/// On drop: creating the future, which calls a function of the user, has panicked, so there is no
/// future to poll or drop.
struct Unmade<'a>(&'a Activation);

impl Drop for Unmade<'_> {
    fn drop(&mut self) {
        self.0.end_polls();
    }
}

/// Ends a preemption of `level` that has run no job.
///
/// # Safety
/// As for [`Partition::resume`](punctual_core::Partition::resume).
#[cold]
#[inline(never)]
unsafe fn finish_unused(
    partition: &'static PartitionState,
    me: CurrentWorker,
    level: &'static Level,
    outer: u8,
) {
    // SAFETY: by this function's contract.
    unsafe { partition.core().resume(me, level, outer) }.finish(None);
}

/// Room for a future of `SIZE` bytes.
#[repr(C, align(64))]
struct Storage<const SIZE: usize>(UnsafeCell<MaybeUninit<[u8; SIZE]>>);

/// An async task whose future takes `SIZE` bytes.
pub struct AsyncTask<B: AsyncBody, const SIZE: usize> {
    activation: Activation,
    timers: TimersOfTask,
    monitor: Monitor,
    /// The arguments of an instance that has not been polled yet and thus has no future. The first
    /// poll creates the future, because a spawn may come from `init`, when there are no resources
    /// yet that the future could borrow.
    message: UnsafeCell<MaybeUninit<B::Message>>,
    has_message: Cell<bool>,
    storage: Storage<SIZE>,
    body: PhantomData<fn(B)>,
}

// SAFETY: message and storage are accessed by the one thread that claimed the activation, then by
// the one that runs the level of the task, and at the end of the run by the only remaining one,
// never concurrently. A value that crosses threads in them is `Send`: `spawn` requires it of
// messages, and `Place::future` of futures. A value that is not `Send` was put there by
// `spawn_local` or by `future_place_local`, and is used and dropped on the thread that created it:
// both are only for local levels (`new` checks it), and all jobs of a local level, including polls,
// run on one thread in a run. `spawn_local` rejects every other thread; `make` is called in a poll.
// After its last poll that thread drops the value, in `retire`. If a thread has died before that,
// `end`, on another thread, leaks the value instead of dropping it.
unsafe impl<B: AsyncBody, const SIZE: usize> Sync for AsyncTask<B, SIZE> {}

impl<B: AsyncBody, const SIZE: usize> AsyncTask<B, SIZE> {
    /// Creates a task whose node is `node` in `level`.
    ///
    /// # Safety
    /// `level` is one of [`Body::partition`], and only this task uses the node.
    pub const unsafe fn new<const N: usize, const W: usize>(
        level: &'static Level,
        node: u32,
        timers: &'static Timers<N, W>,
    ) -> Self {
        assert!(level.number() == B::LEVEL, "a task is in the level of its priority");
        assert!(level.is_local() == B::NON_SEND.future(), "futures stay in a local level");
        Self {
            activation: Activation::new(level, node),
            timers,
            monitor: Monitor::new::<B>(const { &FullTask::new(B::NAME, None) }),
            message: UnsafeCell::new(MaybeUninit::uninit()),
            has_message: Cell::new(false),
            storage: Storage(UnsafeCell::new(MaybeUninit::uninit())),
            body: PhantomData,
        }
    }

    /// Polls the task as `job`.
    ///
    /// # Safety
    /// `job` was popped from the level's queue by the calling thread, which occupies the level, and
    /// is this task's.
    #[inline]
    pub unsafe fn run(&'static self, me: CurrentWorker, job: Popped, now: PackedStamp) -> PackedStamp {
        // SAFETY: this thread occupies the level to run this job, by this function's contract.
        unsafe { self.activate(me, Release::At(self.activation.level().released(job)), now).into() }
    }

    /// # Safety
    /// The calling thread occupies the level to run this.
    #[inline]
    unsafe fn activate(&'static self, me: CurrentWorker, release: Release, now: PackedStamp) -> Stamp {
        // After a fault. Counted when it is dropped.
        if Host::aborts(B::runtime()) {
            return None;
        }
        // After its retirement, a destructor on this thread may release it once more.
        if B::NON_SEND.future() && self.activation.is_retired() || !self.activation.poll() {
            return now.into();
        }
        // SAFETY: this thread occupies the level, by this function's contract; there is a future,
        // which `call` polls.
        unsafe { execute::<B>(&self.monitor, me, Arguments::none(), release, now) }
    }

    /// The job of [`Body::call`].
    ///
    /// # Safety
    /// As for [`Body::call`]; there is an instance.
    #[inline]
    pub unsafe fn poll(&'static self) {
        // There is nothing to drop.
        let waker = ManuallyDrop::new(self.waker());
        let mut cx = Context::from_waker(&waker);
        let storage = self.storage();
        // This thread runs the level of the task, so no other thread uses the instance.
        if self.has_message.get() {
            self.has_message.set(false);
            let unmade = Unmade(&self.activation);
            // SAFETY: the last instance has left the storage, and the resources are filled, because
            // jobs run. There is a message, which is not used again.
            unsafe { B::make(storage, self.message.get().cast()) };
            mem::forget(unmade);
        }
        // SAFETY: there is a future, and this thread runs the level.
        let completed = timers::with(&self.timers, || unsafe { B::poll(storage, &mut cx) });
        if completed {
            // First, so that it is dropped once even if its destructor panics.
            self.activation.end_polls();
            // SAFETY: as above; it is not polled again.
            unsafe { B::drop(storage) };
            self.activation.completed();
        }
    }

    /// Spawns the task. If its level is above the partition's, it has been polled when this
    /// returns.
    ///
    /// # Errors
    /// See [`SpawnError`]; it is full if there is an instance.
    ///
    /// Does not unwind.
    ///
    /// # Safety
    /// `message` points to the message, which this always moves out. It is `Send`: this is not a
    /// bound, because the generated code checks each argument at its position in the source.
    #[inline]
    pub unsafe fn spawn(&'static self, message: *mut B::Message) -> Result<(), SpawnError<B::Message>> {
        let unwinding = AbortOnUnwind;
        let started = match Host::enter(B::runtime()) {
            // SAFETY: the message is used again only if this fails.
            Some(_entry) => unsafe { self.start(message) },
            None => Err(Refusal::Stopping),
        };
        mem::forget(unwinding);
        match started {
            Ok(()) => Ok(()),
            // SAFETY: the message is still there.
            Err(refusal) => unsafe { refusal.answer(&self.monitor, message, ()) },
        }
    }

    /// Spawns a local task, from a task of its level.
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn); also returns an error if the calling thread is not the one that
    /// runs the level.
    ///
    /// # Safety
    /// `message` points to the message, which this always moves out.
    #[inline]
    pub unsafe fn spawn_local(&'static self, message: *mut B::Message) -> Result<(), SpawnError<B::Message>> {
        const { assert!(matches!(B::NON_SEND, NonSend::Everything)) };
        // The spawner in a context leaves neither its thread nor its job. This check does not rely
        // on that.
        let here = Host::worker_of(B::partition()).is_some_and(|me| self.activation.level().keeps_to(me));
        let is_stopping = B::runtime().is_stopping();
        if !here && !is_stopping {
            // SAFETY: by this function's contract.
            return Err(SpawnError::Stopping(unsafe { message.read() }));
        }
        let unwinding = AbortOnUnwind;
        // SAFETY: the message is used again only if this fails.
        let started = if is_stopping { Err(Refusal::Stopping) } else { unsafe { self.start(message) } };
        mem::forget(unwinding);
        match started {
            Ok(()) => Ok(()),
            // SAFETY: the message is still there.
            Err(refusal) => unsafe { refusal.answer(&self.monitor, message, ()) },
        }
    }

    /// Performs the rest of a spawn, which may release something now.
    ///
    /// # Errors
    /// See [`Refusal`].
    ///
    /// # Safety
    /// `message` points to the message, which is not used again if this succeeds.
    #[inline]
    unsafe fn start(&'static self, message: *mut B::Message) -> Result<(), Refusal> {
        if !self.activation.claim() {
            return Err(Refusal::Full);
        }
        // SAFETY: this thread has claimed the activation, so no other thread uses the storage of
        // the message; the message may be moved, by this function's contract.
        unsafe { self.message.get().cast::<B::Message>().copy_from_nonoverlapping(message, 1) };
        self.has_message.set(true);
        if self.activation.spawned() {
            self.release(None);
        }
        Ok(())
    }

    /// Handles an event that the future waits for.
    #[inline(always)]
    fn wake(&'static self) {
        if !Host::is_in(B::partition()) {
            return self.wake_anyhow();
        }
        // SAFETY: this is a thread of the partition.
        let me = unsafe { Host::worker() };
        if B::PROFILE || due::is_set(|| me.running()) || !self.poll_at_once(me) {
            self.wake_anyhow();
        }
    }

    /// Polls the future if it waits, its level can be occupied immediately, and only measurements
    /// are required.
    #[inline]
    fn poll_at_once(&'static self, me: CurrentWorker) -> bool {
        // SAFETY: the level is the partition's, by `new`'s contract; the poll is over when this
        // preemption is finished. This thread has joined as `me`, which is its current worker.
        let preemption = unsafe { B::partition().core().preempt_at::<WakeLevelOf<B>>(me, B::place().0) };
        let Some(preemption) = preemption else {
            return false;
        };
        // Must follow `preempt`: a fault that vacated the level is visible only after it. Not `||`:
        // both are tested at once.
        if is_started_instrumented::<B>() | !self.activation.waits() {
            // SAFETY: the preemption is of this level.
            unsafe { finish_unused(B::partition(), me, B::place().0, preemption.suspend()) };
            return false;
        }
        // SAFETY: this thread occupies the level; there is a future, which `call` polls.
        let end = unsafe {
            execute_plain::<B>(
                &self.monitor,
                me,
                Arguments::none(),
                Release::AtStart,
                PackedStamp::UNKNOWN,
                WORD_CHECKS_JOBS,
            )
        };
        if !preemption.finish_at::<WakeLevelOf<B>>(end) {
            // SAFETY: the preemption is of this task's level, and could not be finished.
            unsafe { end_slow(&self.monitor.declared, me, end.into()) };
        }
        true
    }

    /// [`wake`](Self::wake) on any thread and in any state.
    #[inline(never)]
    fn wake_anyhow(&'static self) {
        let Some(_entry) = Host::enter(B::runtime()) else { return };
        if self.activation.wake() {
            self.release(due::take(|| Host::worker_of(B::partition()).map_or(0, |me| me.running())));
        }
    }

    /// Polls now or queues the poll; the activation is marked as queued.
    #[inline]
    fn release(&'static self, time: Option<u64>) {
        if B::PROFILE {
            match time {
                None => self.monitor.cells.spawned(None),
                Some(_) => self.monitor.cells.spawned_in_time(),
            }
        }
        let me = Host::worker_of(B::partition());
        let (core, level) = (B::partition().core(), self.activation.level());
        if let Some(me) = me
            // SAFETY: the level is the partition's, by `new`'s contract; the poll is over when this
            // preemption is finished.
            && let Some(preemption) = unsafe { core.preempt(me, level) }
        {
            // SAFETY: `preempt` made this thread occupy the level to run this job.
            let end = unsafe {
                self.activate(me, time.map_or(Release::AtStart, Release::At), PackedStamp::UNKNOWN)
            };
            return preemption.finish(end);
        }
        self.activation.stamp(time.unwrap_or_else(|| stamp_any(&self.monitor)));
        let node = self.activation.node();
        match me {
            // SAFETY: the level is the partition's, by `new`'s contract, and the activation has
            // given the node to this caller.
            Some(me) => unsafe { core.spawn(me, level, node) },
            // SAFETY: the same.
            None => unsafe { core.spawn_from_outside(level, node) },
        }
        // A foreign thread or `idle`, for which the job may wait. The thread of the descriptors
        // boosts by itself.
        if Host::HAS_PRIORITIES && me.is_none_or(|me| me.running() == 0) {
            core.boost_for_queued();
        }
    }

    /// Drops the arguments of an instance that was never polled, or else its future, if there is
    /// one.
    ///
    /// # Safety
    /// Only the calling thread uses the task. If `future` is set there is an instance.
    unsafe fn abandon(&self, future: bool) {
        let (message, storage) = (self.message.get().cast::<B::Message>(), self.storage());
        // No other thread uses the task, by this function's contract.
        let has_message = self.has_message.take();
        let drop = || {
            if has_message {
                // SAFETY: there is a message, which is not used again.
                unsafe { message.drop_in_place() }
            } else if future {
                // SAFETY: the instance has been polled, so there is a future, and it is not polled
                // again.
                unsafe { B::drop(storage) }
            }
        };
        Host::ended_by(B::runtime(), Culprit::Handler(B::NAME), drop);
    }

    fn storage(&self) -> *mut u8 {
        self.storage.0.get().cast()
    }

    fn waker(&'static self) -> Waker {
        // SAFETY: the functions of `VTABLE` uphold the contract: they are thread-safe, the data is
        // a static of this type, and there is nothing to count or to free.
        unsafe { Waker::from_raw(RawWaker::new(core::ptr::from_ref(self).cast(), &Self::VTABLE)) }
    }

    const VTABLE: RawWakerVTable = RawWakerVTable::new(
        |data| RawWaker::new(data, &Self::VTABLE),
        Self::wake_raw,
        Self::wake_raw,
        |_| {},
    );

    /// [`wake`](Self::wake) of the task at `data`.
    ///
    /// # Safety
    /// The data is that of [`waker`](Self::waker).
    unsafe fn wake_raw(data: *const ()) {
        // SAFETY: by this function's contract, it is a static of this type.
        unsafe { &*data.cast::<Self>() }.wake();
    }
}

impl<B: AsyncBody, const SIZE: usize> core::fmt::Debug for AsyncTask<B, SIZE> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("AsyncTask").field("task", &B::NAME).finish_non_exhaustive()
    }
}

impl<B: AsyncBody, const SIZE: usize> Registered for AsyncTask<B, SIZE> {
    unsafe fn begin(&self) {
        // SAFETY: no job of the task can run, by this function's contract.
        unsafe { self.monitor.begin() };
    }

    fn info(&'static self) -> Option<TaskInfo> {
        Some(self.monitor.info())
    }

    unsafe fn retire(&self, level: &'static Level) {
        if B::NON_SEND.future() && core::ptr::eq(level, self.activation.level()) && self.activation.retire() {
            // SAFETY: there is an instance, and this thread, the only one to poll it, does not poll
            // it again.
            unsafe { self.abandon(true) };
        }
    }

    unsafe fn end(&self) -> u32 {
        // SAFETY: no other thread uses the task, by this function's contract.
        let instance = unsafe { self.activation.reset() };
        if B::NON_SEND == NonSend::Everything {
            // No other thread uses the task, by this function's contract.
            self.has_message.set(false);
        } else {
            // SAFETY: no thread polls it again.
            unsafe { self.abandon(instance.is_some() && !B::NON_SEND.future()) };
        }
        // An interrupted wait is not a job; a poll that is never made is one.
        instance.is_some_and(|waits| waits).into()
    }

    unsafe fn report(&self) -> Option<TaskReport> {
        // SAFETY: no job of the task can run, by this function's contract.
        Some(unsafe { self.monitor.report() })
    }
}
