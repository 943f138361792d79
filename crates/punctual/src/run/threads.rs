//! The threads of a run that run tasks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};

use punctual_core::Worker;

use super::StartError;
use super::plan::Plan;
use super::supervisor::Progress;
use crate::current::Member;
use crate::linux::settings::{self, Wanted};
use crate::linux::{events, reactor, suspension};
use crate::part::Part;
use crate::report::ThreadSettings;
use crate::runtime::Runtime;

const STACK: usize = 2 * 1024 * 1024;

/// The threads, each with its settings.
#[derive(Debug)]
pub(super) struct Threads<'a> {
    runtime: &'static Runtime,
    plan: &'a Plan,
    progress: &'a Arc<Progress>,
    handles: Vec<JoinHandle<()>>,
    /// What the kernel granted, in order of starting.
    pub(super) settings: Vec<ThreadSettings>,
    real_time: Vec<&'static Worker>,
}

impl<'a> Threads<'a> {
    /// Starts them all, while everything is held.
    pub(super) fn start(
        runtime: &'static Runtime,
        plan: &'a Plan,
        progress: &'a Arc<Progress>,
    ) -> Result<Self, StartError> {
        let (handles, settings, real_time) = (Vec::new(), Vec::new(), Vec::new());
        let mut threads = Self { runtime, plan, progress, handles, settings, real_time };
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
        for part in runtime.parts {
            let partition = part.partition();
            let mut levels: Vec<_> = partition.levels().to_vec();
            levels.sort_by_key(|level| std::cmp::Reverse(level.number()));
            for level in levels {
                let name = format!("level {}", level.number());
                self.add(part, name, level.worker(), move || partition.work(level))?;
            }
        }
        for source in runtime.sources() {
            let name = format!("event {}", source.name());
            self.add(source.part(), name, source.worker(), move || events::listen(source))?;
        }
        if let Some(reactor) = runtime.reactor() {
            let life = move || reactor::listen(reactor);
            self.add(reactor.part(), "event async".to_owned(), reactor.worker(), life)?;
        }
        Ok(())
    }

    /// Starts one thread and waits until it has its settings.
    fn add(
        &mut self,
        part: &'static Part,
        what: String,
        worker: &'static Worker,
        life: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<()> {
        let wanted = Wanted { cpu: self.plan.cpu(part), priority: self.plan.priority(worker) };
        let name = self.plan.name(part, &what);
        let alive = Alive::new(Arc::clone(self.progress));
        let (report, settings) = channel();
        let handle = Builder::new().name(name.clone()).stack_size(STACK).spawn(move || {
            let _alive = alive;
            prepare(&name, worker, wanted, report);
            let _member = Member::join(part, worker);
            // Jobs' panics are caught where they run; one that arrives here is the executor's own.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(life)) {
                crate::task::panicked(part.runtime, "the executor", &*panic);
            }
        })?;
        self.handles.push(handle);
        let settings: ThreadSettings = settings.recv().expect("a new thread reports its settings first");
        if settings.policy == "SCHED_FIFO" {
            self.real_time.push(worker);
        }
        self.settings.push(settings);
        Ok(())
    }

    /// Rule 6: a spawn runs as a call only on a worker that has its policy, or if nobody of its partition has.
    pub(super) fn allow_calls(&self) {
        for part in self.runtime.parts {
            let has = |worker: &&Worker| self.real_time.iter().any(|w| std::ptr::eq(*w, *worker));
            let nobody = !part.partition.workers().iter().any(has);
            for worker in part.partition.workers() {
                // The thread of `init` stands in for the idle threads of partitions that have none.
                let absent = std::ptr::eq(*worker, part.idle) && !std::ptr::eq(*part, self.runtime.home);
                worker.allow_calls(!absent && (nobody || has(worker)));
            }
        }
    }

    /// Ends a run before `init`, with everything still held.
    pub(super) fn abandon(self) {
        self.runtime.parts.iter().for_each(|part| part.partition.stop());
        self.runtime.interrupt();
        self.runtime.parts.iter().for_each(|part| part.partition().abandon(part.idle));
        self.join();
    }

    /// Waits until all have ended.
    pub(super) fn join(self) {
        for handle in self.handles {
            // They do not unwind.
            let _ = handle.join();
        }
    }
}

/// Counts a thread from before its start until after its end.
struct Alive(Arc<Progress>);

impl Alive {
    fn new(progress: Arc<Progress>) -> Self {
        progress.workers.fetch_add(1, Ordering::AcqRel);
        Self(progress)
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.workers.fetch_sub(1, Ordering::AcqRel);
    }
}

fn prepare(name: &str, worker: &'static Worker, wanted: Wanted, report: Sender<ThreadSettings>) {
    let settings = settings::apply(name, wanted);
    worker.enter(kernel_thread(), settings.policy == "SCHED_FIFO");
    // Before the first job rather than in it.
    suspension::slept();
    // The run waits for it, or has given up, in which case the partition is stopping.
    let _ = report.send(settings);
}

/// The kernel's number for the calling thread.
pub(super) fn kernel_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}
