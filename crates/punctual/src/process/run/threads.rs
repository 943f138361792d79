//! The threads of a run that run tasks.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, PoisonError};
use std::thread::{Builder, JoinHandle};

use punctual_core::{CurrentWorker, Worker};

use super::plan::Plan;
use super::supervisor::Progress;
use super::{event_threads, stacks};
use crate::background;
use crate::config::Marks;
use crate::logging::Logging;
use crate::observe::guard::WatchedThread;
use crate::port::linux::polled::{Begun, Hits};
use crate::port::linux::settings::{self, Effective, Place, Wanted};
use crate::port::linux::stack::Bounds;
use crate::port::linux::{self, futex, polling, suspension};
use crate::report::ThreadSettings;
use crate::start_error::StartError;
use crate::state::fault;
use crate::state::forked;
use crate::state::panic_hook::PanicRedirect;
use crate::state::partition::{PartitionState, ThreadModel};
use crate::state::runtime::Runtime;
use crate::state::thread::Member;
use crate::stop::Culprit;

/// The threads, each with its settings.
#[derive(Debug)]
pub(super) struct Threads<'a> {
    runtime: &'static Runtime,
    plan: &'a Plan,
    progress: &'a Arc<Progress>,
    handles: Vec<JoinHandle<AtEnd>>,
    /// The granted settings, in order of starting.
    pub(super) settings: Vec<ThreadSettings>,
    real_time: Vec<&'static Worker>,
    /// For the polling threads: they take over from this one when these are dropped.
    begin: Vec<Sender<()>>,
    polling: Polling,
}

/// State of a thread when it ends.
#[derive(Debug)]
pub(super) struct AtEnd {
    /// Peak stack usage, in bytes, if known.
    pub(super) stack_used: Option<usize>,
    pub(super) settings: Effective,
}

/// The threads that poll.
#[derive(Debug, Default)]
struct Polling {
    started: usize,
    /// Number of them that have finished all steps before their first check. An atomic, not a
    /// channel: they must not enter the kernel anymore.
    ready: Arc<AtomicUsize>,
}

impl<'a> Threads<'a> {
    /// Starts them all, while everything is held.
    pub(super) fn start(
        runtime: &'static Runtime,
        plan: &'a Plan,
        progress: &'a Arc<Progress>,
    ) -> Result<Self, StartError> {
        let mut threads = Self {
            runtime,
            plan,
            progress,
            handles: Vec::new(),
            settings: Vec::new(),
            real_time: Vec::new(),
            begin: Vec::new(),
            polling: Polling::default(),
        };
        match threads.add_all() {
            Ok(()) => Ok(threads),
            Err(error) => {
                threads.abandon();
                Err(StartError::System { attempt: "starting a worker thread", error })
            }
        }
    }

    fn add_all(&mut self) -> std::io::Result<()> {
        let runtime = self.runtime;
        for partition in runtime.partitions {
            let core = partition.core();
            if partition.model == ThreadModel::Polling {
                self.add_polling(partition)?;
                continue;
            }
            let mut levels: Vec<_> = core.levels().to_vec();
            levels.sort_by_key(|level| std::cmp::Reverse(level.number()));
            for level in levels {
                let name = format!("level {}", level.number());
                let worker = level.worker();
                let body = move |me| {
                    core.work(me, level);
                    // SAFETY: this is the level's worker, and there is no other thread that runs
                    // every level.
                    unsafe { partition.retire(me, level) };
                };
                self.add(partition, name, worker, move |me| as_member(partition, me, body))?;
            }
        }
        for source in runtime.sources() {
            let name = format!("event {}", source.name());
            let (partition, worker) = (source.partition(), source.worker());
            self.add(partition, name, worker, move |me| match partition.model {
                // It runs no jobs there.
                ThreadModel::Polling => event_threads::listen(source, me),
                _ => as_member(partition, me, |me| event_threads::listen(source, me)),
            })?;
        }
        if let Some(reactor) = runtime.reactor() {
            let (partition, worker) = (reactor.partition(), reactor.worker());
            let body = move |me| as_member(partition, me, |me| event_threads::listen_for_async(reactor, me));
            self.add(partition, "event async".to_owned(), worker, body)?;
        }
        Ok(())
    }

    /// Starts the only thread of a polling partition. It is an ordinary thread: a real-time thread
    /// that never sleeps would be throttled, and on a dedicated CPU it needs no priority.
    fn add_polling(&mut self, partition: &'static PartitionState) -> std::io::Result<()> {
        let (begin, begun) = channel::<()>();
        self.begin.push(begin);
        self.polling.started += 1;
        let ready = Arc::clone(&self.polling.ready);
        let (cpu, progress) = (self.plan.cpu(partition), Arc::clone(self.progress));
        let counts_calls = self.plan.marks != Marks::Off;
        let body = move |_| {
            // Until then the worker is used by the thread of `init`. Nothing is ever sent.
            let _ = begun.recv();
            // SAFETY: the thread of `init` no longer uses it, because it has handed it over.
            let me = unsafe { partition.enter_idle() };
            let mut hits = None;
            as_member(partition, me, |me| hits = poll(partition, me, (cpu, counts_calls), &ready));
            let note = hits.map(|hits| format!("while partition {} polled: {hits}", partition.name));
            progress.hits.lock().unwrap_or_else(PoisonError::into_inner).extend(note);
        };
        self.add_thread(partition, "polling".to_owned(), None, body)
    }

    /// Lets the polling threads begin; the calling thread no longer uses their workers.
    pub(super) fn hand_over(&mut self) {
        self.begin.clear();
    }

    /// Returns whether every polling thread is in its loop, or one step before it.
    pub(super) fn all_poll(&self) -> bool {
        self.polling.ready.load(Ordering::Acquire) == self.polling.started
    }

    /// Returns the threads that sleep until the next release of a periodic task.
    fn keepers(&self) -> impl Iterator<Item = &'static Worker> + use<> {
        let sleeps = |partition: &&PartitionState| partition.model != ThreadModel::Polling;
        let levels = self.runtime.partitions.iter().copied().filter(sleeps).flat_map(|it| it.core.levels());
        levels.filter(|level| level.is_periodic()).map(|level| level.worker())
    }

    /// Wakes each thread that sleeps until the next release of a periodic task, as starting its
    /// grid does.
    pub(super) fn wake_keepers(&self) {
        self.keepers().for_each(futex::wake);
    }

    /// Returns whether all of them sleep.
    pub(super) fn keepers_sleep(&self) -> bool {
        self.keepers().all(futex::is_asleep)
    }

    /// Starts one thread and waits until it has its settings.
    fn add(
        &mut self,
        partition: &'static PartitionState,
        what: String,
        worker: &'static Worker,
        body: impl FnOnce(CurrentWorker) + Send + 'static,
    ) -> std::io::Result<()> {
        let body = |me: Option<CurrentWorker>| body(me.expect("it is started with a worker"));
        self.add_thread(partition, what, Some(worker), body)
    }

    fn add_thread(
        &mut self,
        partition: &'static PartitionState,
        what: String,
        worker: Option<&'static Worker>,
        body: impl FnOnce(Option<CurrentWorker>) + Send + 'static,
    ) -> std::io::Result<()> {
        let wanted = self.wanted(partition, worker);
        let polls = partition.model == ThreadModel::Polling && worker.is_none();
        let name = partition.public_name().map_or(what.clone(), |name| format!("{name} {what}"));
        let alive = Alive::new(Arc::clone(self.progress));
        let (report, settings) = channel();
        let size = self.plan.stacks.size(partition, worker.unwrap_or(partition.idle).base());
        let handle = Builder::new().name(name.clone()).stack_size(size).spawn(move || {
            let _alive = alive;
            let stack = Bounds::of_this_thread();
            let _watched = stacks::watch(stack);
            // Dropped only at the end: the last end of a channel frees its memory, and this thread
            // may have jobs by then.
            let report = report;
            // SAFETY: the worker belongs to this run, which starts one thread for it, and those of
            // earlier runs have ended.
            let me = worker.map(|worker| unsafe { CurrentWorker::new(worker) });
            let _redirect = PanicRedirect::to(partition.runtime);
            prepare(&name, me, wanted, polls, stack, &report);
            // Jobs' panics are caught in the job; one that arrives here is the executor's own.
            fault::contained(partition.runtime, Culprit::Executor, || body(me));
            AtEnd { stack_used: stack.map(|stack| stack.used()), settings: Effective::read() }
        })?;
        self.handles.push(handle);
        let settings: ThreadSettings = settings.recv().map_err(std::io::Error::other)?;
        if settings.policy == "SCHED_FIFO" {
            self.real_time.extend(worker);
        }
        self.settings.push(settings);
        Ok(())
    }

    fn wanted(&self, partition: &'static PartitionState, worker: Option<&'static Worker>) -> Wanted {
        let place = match (partition.model, self.plan.cpu(partition)) {
            // Other threads perform the operations that a polling partition must not perform
            // itself.
            (ThreadModel::Polling, _) if worker.is_some() => Place::Among(self.plan.background_cpus()),
            (_, Some(cpu)) => Place::Cpu(cpu),
            (_, None) => Place::Anywhere,
        };
        let priority = worker
            .filter(|_| partition.model != ThreadModel::Polling)
            .map(|worker| self.plan.priority(worker));
        Wanted { place, priority }
    }

    /// Rule 6: a spawn runs as a call only on a worker that has its policy, or if no worker of its
    /// partition has.
    pub(super) fn allow_calls(&self) {
        for partition in self.runtime.partitions {
            let has = |worker: &&Worker| self.real_time.iter().any(|w| std::ptr::eq(*w, *worker));
            let nobody = !partition.core.workers().iter().any(has);
            for worker in partition.core.workers() {
                // The thread of `init` stands in for the idle threads of partitions that have none.
                let absent = std::ptr::eq(*worker, partition.idle) && !partition.is_home();
                worker.allow_calls(!absent && (nobody || has(worker)));
            }
        }
    }

    /// Ends a run before `init`, with everything still held.
    pub(super) fn abandon(mut self) {
        self.runtime.give_up();
        self.runtime.interrupt();
        // SAFETY: the calling thread holds everything, and no thread has taken over yet.
        self.runtime
            .partitions
            .iter()
            .for_each(|partition| unsafe { partition.core().abandon(partition.enter_idle()) });
        self.hand_over();
        self.join();
    }

    /// Waits until all have ended; returns the last state of each, if known.
    pub(super) fn join(mut self) -> Vec<Option<AtEnd>> {
        self.hand_over();
        // They do not unwind.
        self.handles.into_iter().map(|handle| handle.join().ok()).collect()
    }
}

/// Runs `body` as a thread of `partition`.
fn as_member(partition: &'static PartitionState, me: CurrentWorker, body: impl FnOnce(CurrentWorker)) {
    let _logging = Logging::begin();
    let _member = Member::join(partition, me);
    let _watched = WatchedThread::begin(partition.runtime);
    body(me);
    forked::check(partition.runtime);
}

/// The main loop of a polling partition's thread, the only one that runs the jobs of `partition`;
/// returns once the app is stopping.
fn poll(
    partition: &'static PartitionState,
    me: CurrentWorker,
    (cpu, counts_calls): (Option<usize>, bool),
    ready: &AtomicUsize,
) -> Option<Hits> {
    me.enter(linux::kernel_thread(), false);
    // SAFETY: the partition has no threads for its levels, and those that wait for events run no
    // jobs.
    unsafe { me.set_polling() };
    let calls = partition.host.calls.expect("a polling partition has calls");
    let mut hits = None;
    polling::as_mine(|| {
        background::with(calls, || {
            let begun = Begun::new(cpu, counts_calls);
            ready.fetch_add(1, Ordering::Release);
            partition.core().poll(me);
            hits = Some(begun.end());
            forked::check(partition.runtime);
            // SAFETY: only this thread runs jobs of the partition.
            partition.core.levels().iter().for_each(|level| unsafe { partition.retire(me, level) });
        });
    });
    hits
}

/// Counts a thread from before its start until after its end.
pub(super) struct Alive(Arc<Progress>);

impl Alive {
    pub(super) fn new(progress: Arc<Progress>) -> Self {
        progress.workers.fetch_add(1, Ordering::AcqRel);
        Self(progress)
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.workers.fetch_sub(1, Ordering::AcqRel);
    }
}

fn prepare(
    name: &str,
    me: Option<CurrentWorker>,
    wanted: Wanted,
    polls: bool,
    stack: Option<Bounds>,
    report: &Sender<ThreadSettings>,
) {
    let mut settings = settings::apply(name, wanted, stack);
    if polls {
        settings.missing.extend(polling::missing(&settings.cpus));
    }
    if let Some(me) = me {
        me.enter(linux::kernel_thread(), settings.policy == "SCHED_FIFO");
    }
    // Before the first job rather than in it.
    suspension::slept();
    // The run waits for it, or has given up, in which case the partition is stopping.
    let _ = report.send(settings);
}
