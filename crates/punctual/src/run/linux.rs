//! A run on real-time threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration as StdDuration;

use punctual_core::{Port, Worker};

use super::supervisor::{Progress, Supervisor};
use super::{App, StartError};
use crate::Config;
use crate::current::Member;
use crate::linux::cpu::{self, Allowed};
use crate::linux::events::{self, Controls};
use crate::linux::reactor::{self, Opened};
use crate::linux::settings::{self, Wanted};
use crate::linux::{self, memory, neighbours};
use crate::report::{Report, Settings, ThreadSettings};
use crate::runtime::{Runtime, Taken};

/// Kernel priority of level 0: above the interrupt threads of PREEMPT_RT, which have 50.
const PRIORITY_BASE: u8 = 50;
const STACK: usize = 2 * 1024 * 1024;

pub(super) fn run<A: App>(
    runtime: &'static Runtime,
    config: &Config,
    app: A,
    taken: &Taken,
) -> Result<Report, StartError> {
    let plan = Plan::new(runtime, config)?;
    let system =
        |attempt| move |error: rustix::io::Errno| StartError::System { attempt, error: error.into() };
    let memory = memory::Locked::all();
    let _controls = Controls::new(runtime).map_err(system("making an eventfd"))?;
    let _opened = Opened::new(runtime, true).map_err(system("making an epoll set"))?;
    let until = config.until.map(|until| StdDuration::from_nanos(until.as_ticks()));
    let supervisor = Supervisor::start(runtime, until, move || last_resort::<A>(runtime))?;
    let _placement = Placement::new(&plan);

    let (partition, me) = (&runtime.partition, runtime.idle);
    me.enter(kernel_thread(), false);
    // Until the end: the hook is a part of the app, with its clock.
    let _member = Member::join(runtime, me);
    partition.hold_everything(me);

    let threads = Threads::start(runtime, &plan, supervisor.progress())?;
    let settings = plan.settings(&threads, &memory);
    let missing = settings.all_missing();
    if plan.strict && !missing.is_empty() {
        threads.abandon(runtime);
        return Err(StartError::Strict(missing));
    }
    threads.allow_calls(runtime);
    warn(&settings, &missing);

    // SAFETY: everything is held, so no task runs, and a taken app has no resources filled.
    let mut kept = unsafe { super::init(runtime, app) };
    if let Some(kept) = &mut kept {
        // SAFETY: the resources are filled and no task runs.
        runtime.sources().for_each(|source| unsafe { source.refresh() });
        if let Err(error) = cpu::pin(plan.cpu) {
            eprintln!("punctual: idle is not pinned to CPU {}: {error}", plan.cpu);
        }
        runtime.sources().for_each(|source| source.interrupt());
        let start = partition.port().now();
        runtime.set_started(start);
        partition.go(me, start);
        supervisor.progress().idling.store(true, Ordering::Release);
        // SAFETY: the resources are filled, and this is the idle thread.
        unsafe { super::idle::<A>(runtime, kept) };
        supervisor.progress().idling.store(false, Ordering::Release);
    } else {
        partition.abandon(me);
    }
    runtime.wait_for_stop();
    threads.join();
    // SAFETY: every other thread of the run has ended.
    Ok(unsafe { super::finish::<A>(runtime, taken, kept.is_some(), false, settings) })
}

/// What was decided before anything is started.
struct Plan {
    cpu: usize,
    priority_base: u8,
    highest: u8,
    strict: bool,
    allowed: Allowed,
}

impl Plan {
    fn new(runtime: &Runtime, config: &Config) -> Result<Self, StartError> {
        let allowed = Allowed::of_this_thread().map_err(|error| StartError::System {
            attempt: "reading the CPU affinity",
            error: error.into(),
        })?;
        // The environment comes last, so that whoever runs the program has the last word.
        let from_environment = Config::from_env();
        if let Some(problem) = from_environment.bad_environment {
            return Err(StartError::Environment(problem));
        }
        let asked = from_environment.cpu.or(config.cpu).or(runtime.options.cpu);
        let cpu = asked.or_else(|| cpu::default(&allowed)).unwrap_or(0);
        if !allowed.contains(cpu) {
            return Err(StartError::Cpu { cpu, allowed: allowed.to_string() });
        }
        let base = config.priority_base.or(runtime.options.priority_base).unwrap_or(PRIORITY_BASE);
        let highest = runtime.partition.levels().iter().map(|level| level.number()).max().unwrap_or(0);
        if u32::from(base) + u32::from(highest) > 99 || base == 0 {
            return Err(StartError::Priority { base, highest });
        }
        let strict = from_environment.strict.or(config.strict).unwrap_or(runtime.options.strict);
        Ok(Self { cpu, priority_base: base, highest, strict, allowed })
    }

    fn wanted(&self, worker: &Worker) -> Wanted {
        Wanted { cpu: self.cpu, priority: self.priority_base + worker.base() }
    }

    fn settings(&self, threads: &Threads, memory: &memory::Locked) -> Settings {
        let band = self.priority_base + 1..=self.priority_base + self.highest;
        let mut idle = settings::ordinary("idle");
        // It is pinned when it starts to idle, after `init`.
        idle.cpus = self.cpu.to_string();
        let mut notes = neighbours::throttling(self.cpu);
        notes.extend(neighbours::in_band(self.cpu, band));
        Settings {
            kernel: linux::kernel(),
            memory: memory::Locked::describe(),
            threads: threads.settings.iter().cloned().chain([idle]).collect(),
            missing: memory.missing.iter().cloned().collect(),
            notes,
        }
    }
}

/// Keeps helpers off the partition's CPU during the run, and puts this thread back afterwards.
struct Placement {
    before: Allowed,
}

impl Placement {
    fn new(plan: &Plan) -> Self {
        linux::set_helper_cpus(Some(plan.allowed.without(plan.cpu)));
        Self { before: plan.allowed.clone() }
    }
}

impl Drop for Placement {
    fn drop(&mut self) {
        linux::set_helper_cpus(None);
        if let Err(error) = self.before.apply() {
            eprintln!("punctual: this thread stays pinned: {error}");
        }
    }
}

/// The threads that run tasks.
struct Threads {
    handles: Vec<JoinHandle<()>>,
    settings: Vec<ThreadSettings>,
    real_time: Vec<&'static Worker>,
}

impl Threads {
    fn start(runtime: &'static Runtime, plan: &Plan, progress: &Arc<Progress>) -> Result<Self, StartError> {
        let mut threads = Self { handles: Vec::new(), settings: Vec::new(), real_time: Vec::new() };
        let partition = runtime.partition();
        let mut levels: Vec<_> = partition.levels().to_vec();
        levels.sort_by_key(|level| std::cmp::Reverse(level.number()));
        for level in levels {
            let name = format!("level {}", level.number());
            let life = move || partition.work(level);
            if let Err(error) = threads.add(runtime, plan, progress, name, level.worker(), life) {
                return Err(threads.give_up(runtime, error));
            }
        }
        for source in runtime.sources() {
            let name = format!("event {}", source.name());
            let life = move || events::listen(runtime, source);
            if let Err(error) = threads.add(runtime, plan, progress, name, source.worker(), life) {
                return Err(threads.give_up(runtime, error));
            }
        }
        if let Some(reactor) = runtime.reactor() {
            let life = move || reactor::listen(runtime, reactor);
            let name = "event async".to_owned();
            if let Err(error) = threads.add(runtime, plan, progress, name, reactor.worker(), life) {
                return Err(threads.give_up(runtime, error));
            }
        }
        Ok(threads)
    }

    /// Starts one thread and waits until it has its settings.
    fn add(
        &mut self,
        runtime: &'static Runtime,
        plan: &Plan,
        progress: &Arc<Progress>,
        name: String,
        worker: &'static Worker,
        life: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<()> {
        let wanted = plan.wanted(worker);
        let alive = Alive::new(Arc::clone(progress));
        let (report, settings) = channel();
        let handle = Builder::new().name(name.clone()).stack_size(STACK).spawn(move || {
            let _alive = alive;
            prepare(&name, worker, wanted, report);
            let _member = Member::join(runtime, worker);
            // Jobs' panics are caught where they run; one that arrives here is the executor's own.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(life)) {
                crate::task::panicked(runtime, "the executor", &*panic);
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

    /// Rule 6: a spawn runs as a call only on a worker that has its policy, or if nobody has.
    fn allow_calls(&self, runtime: &'static Runtime) {
        let nobody = self.real_time.is_empty();
        for worker in runtime.partition.workers() {
            worker.allow_calls(nobody || self.real_time.iter().any(|w| std::ptr::eq(*w, *worker)));
        }
    }

    fn give_up(self, runtime: &'static Runtime, error: std::io::Error) -> StartError {
        self.abandon(runtime);
        StartError::System { attempt: "starting a worker thread", error }
    }

    /// Ends a run before `init`, with everything still held.
    fn abandon(self, runtime: &'static Runtime) {
        runtime.partition.stop();
        runtime.interrupt();
        runtime.partition.abandon(runtime.idle);
        self.join();
    }

    fn join(self) {
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
    linux::suspension::slept();
    // The run waits for it, or has given up, in which case the partition is stopping.
    let _ = report.send(settings);
}

/// Says loudly what is missing.
fn warn(settings: &Settings, missing: &[String]) {
    if missing.is_empty() {
        return;
    }
    if settings.threads.iter().any(|thread| thread.policy == "SCHED_FIFO") {
        eprintln!("punctual: real-time settings are incomplete; timing is not guaranteed:");
    } else {
        eprintln!("punctual: without real-time priorities; everything works, and no timing is guaranteed:");
    }
    missing.iter().for_each(|what| eprintln!("punctual:   {what}"));
}

/// For an `idle` that neither returns nor waits for events: ends the process in its stead, unless it is running
/// a job.
fn last_resort<A: App>(runtime: &'static Runtime) {
    let report = Report { outcome: runtime.outcome(), ..Report::default() };
    let mut code = report.exit_code();
    if A::IDLE_SHARES {
        eprintln!(
            "punctual: idle does not return and uses shared resources, so #[shutdown] cannot run; call \
             punctual::wait_for_event() in its loop"
        );
        code = code.max(1);
    } else if !runtime.partition.close() {
        // The idle thread is in the middle of a job, which without privileges it may be.
        return;
    } else {
        // SAFETY: every worker has ended, and on the idle thread no job runs and none will, for the partition is
        // closed. The idle thread itself touches no resource that the hook may use.
        unsafe { A::shutdown() };
    }
    std::process::exit(code.into());
}

fn kernel_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}
