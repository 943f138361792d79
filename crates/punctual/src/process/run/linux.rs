//! A run on real-time threads.

use std::cmp::Reverse;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as StdDuration;

use punctual_core::Port;

use super::caller::Caller;
use super::endless_idle::EndlessIdle;
use super::event_threads::Controls;
use super::event_threads::Opened;
use super::functions::Functions;
use super::grid_start;
use super::plan::Plan;
use super::supervised::Supervised;
use super::supervisor::Supervisor;
use super::threads::{Alive, AtEnd, Threads};
use crate::config::Config;
use crate::logging::{self, Logging};
use crate::observe::guard::{Guarded, WatchedThread};
use crate::observe::markers::Marks;
use crate::observe::metrics::Metrics;
use crate::observe::profile::Profile;
use crate::port::linux::cpu::{self, Allowed};
use crate::port::linux::futex::{ADVICE, Refused};
use crate::port::linux::inherited::Inherited;
use crate::port::linux::settings::{self, Effective};
use crate::port::linux::stderr;
use crate::port::linux::word;
use crate::port::linux::{self, counter, futex, idle_states, interference, memory, notice};
use crate::process::task::costs;
use crate::report::{Report, Settings, ThreadSettings};
use crate::start_error::StartError;
use crate::state::RunGuard;
use crate::state::panic_hook::{FlushDeferred, PanicRedirect};
use crate::state::partition::{PartitionState, ThreadModel};
use crate::state::runtime::Runtime;
use crate::state::thread::Member;
use crate::state::{fault, forked};
use crate::stop::Culprit;

/// The longest spin before a sleep.
const MAX_SPIN_NS: u64 = 1_000_000;

pub(super) fn run(
    runtime: &'static Runtime,
    config: &Config,
    mut functions: Functions<'_>,
    taken: &RunGuard,
) -> Result<Report, StartError> {
    // Dropped last, when every thread of the run has ended.
    let inherited = Inherited::normalize();
    let plan = Plan::new(runtime, config)?;
    runtime.keep_panic_hook(config.platform.keep_panic_hook);
    let _flush = FlushDeferred;
    let _redirect = PanicRedirect::to(runtime);
    let system =
        |attempt| move |error: rustix::io::Errno| StartError::System { attempt, error: error.into() };
    futex::probe().map_err(|Refused { what, error }| StartError::Futex {
        operation: what,
        error: error.into(),
        advice: ADVICE,
    })?;
    let memory = memory::Locked::all();
    let awake = idle_states::Bound::new(plan.wake_latency);
    let _controls = Controls::new(runtime).map_err(system("making an eventfd"))?;
    let _opened = Opened::new(runtime, true).map_err(system("making an epoll set"))?;
    let until = config.until.map(|until| StdDuration::from_nanos(until.as_ticks()));
    let marks = Arc::new(Marks::new(runtime, &plan.marks));
    let by_clock = counter::choose().err();
    let profile = config.platform.profile.as_deref();
    let place = |partition: &PartitionState| {
        let cpu = plan.cpu(partition);
        (cpu, costs::measure(partition, cpu))
    };
    let profile = profile.map(|path| Profile::begin(runtime, path, Some(&place))).transpose()?;
    let supervised = Supervised::begin(runtime, &plan);
    let guarded = Guarded::begin(runtime, config.platform.guard);
    let supervisor = Supervisor::start(runtime, until, &marks, EndlessIdle::new(runtime, &functions))?;
    let placement = Placement::new(&plan);
    let progress = Arc::clone(supervisor.progress());
    let alone = move || runtime.is_stopping() && progress.workers.load(Ordering::Acquire) == 1;
    let alive = Alive::new(Arc::clone(supervisor.progress()));
    let caller = Caller::start(runtime, alone, alive).map_err(|error| StartError::System {
        attempt: "starting the thread that makes system calls",
        error,
    })?;

    let home = runtime.home;
    let spin_ns = config.platform.spin.map_or(0, |spin| spin.as_ticks().min(MAX_SPIN_NS) as u32);
    for partition in runtime.partitions {
        partition.core.port().spin_for(spin_ns);
        // SAFETY: the app is taken, so no thread of another run is left. A polling one takes over
        // at `hand_over`.
        let idle = unsafe { partition.enter_idle() };
        idle.enter(linux::kernel_thread(), false);
        partition.core.hold_all_jobs(idle);
    }
    let unbiased = word::begin(home.core.word_cell(), plan.biased()).err();
    // SAFETY: as above; home does not poll.
    let me = unsafe { home.enter_idle() };
    // Until the end: the hook is part of the app, with its clock.
    let _member = Member::join(home, me);
    let _watched = WatchedThread::begin(runtime);
    let mut logging = Logging::begin();

    let mut threads = Threads::start(runtime, &plan, supervisor.progress())?;
    let mut granted =
        report_settings(runtime, &plan, &threads.settings, (&memory, &awake, &marks), &inherited);
    granted.notes.extend(by_clock.map(|why| {
        format!("jobs are timed by CLOCK_MONOTONIC, since {why}: a reading takes longer than one of the processor's counter")
    }));
    granted
        .notes
        .extend(unbiased.map(|why| format!("locks and spawns take locked instructions, since {why}")));
    granted.notes.extend(supervised.notes().iter().cloned());
    granted.notes.extend(guarded.notes().iter().cloned());
    let missing = granted.all_missing();
    if plan.strict && !missing.is_empty() {
        threads.abandon();
        return Err(StartError::Strict(missing.join("\n").into()));
    }
    threads.allow_calls();
    warn(&granted, &missing);
    // SAFETY: everything is held, so no job can run.
    let shown = plan.metrics.then(|| unsafe { Metrics::show(runtime, &granted, plan.cpus()) }).transpose();
    let _shown = shown.map_or_else(
        |error| {
            granted
                .notes
                .push(format!("`punctual top` cannot show this app: its memory was refused: {error}"));
            None
        },
        |shown| shown.inspect(|shown| supervisor.copy_counts(shown)),
    );

    let now = || home.core.port().now();
    let wake = || settings::boosted(plan.highest_priority(), || threads.wake_keepers());
    let lead = grid_start::lead(&now, wake, || threads.keepers_sleep());

    let (mut filled, mut writer) = (false, None);
    // Only a bug of ours panics in here, because panics of user functions are contained. In every
    // case, the threads are joined before their descriptors and resources are dropped.
    fault::contained(runtime, Culprit::Executor, || {
        // SAFETY: everything is held, so no task runs, and a taken app has no resources filled.
        filled = unsafe { super::init(runtime, me, &mut functions) };
        if filled {
            // SAFETY: the resources are filled and no task runs.
            unsafe { super::refresh_sources(runtime) };
            // Now, because `init` may have set the logger.
            writer = logging::Writer::start();
            placement.idle(runtime, &plan);
            if let Some(idle) = granted.threads.last_mut() {
                idle.cpus = settings::ordinary("idle").cpus;
            }
            // Now that this thread, too, is on its CPU.
            word::bias(home.core.word_cell());
            runtime.sources().for_each(|source| source.interrupt());
            let (polling, others) = starting_order(runtime);
            // For jobs that polling threads run at once; it is set again for all others.
            runtime.set_started(now());
            // SAFETY: this thread holds everything, and no thread has taken over yet.
            polling.iter().for_each(|partition| unsafe { partition.core().abandon(partition.enter_idle()) });
            threads.hand_over();
            grid_start::begin(
                &now,
                || threads.all_poll(),
                lead,
                |origin| {
                    // At once, rather than when this thread gets a CPU again.
                    settings::boosted(plan.highest_priority(), || {
                        runtime.set_started(now());
                        let origin = origin();
                        runtime.set_grid(origin);
                        polling.iter().for_each(|partition| partition.core().lay_grids(origin));
                        // SAFETY: this thread holds these, and no thread takes them over.
                        others.iter().for_each(|partition| unsafe {
                            partition.core().go(partition.enter_idle(), origin);
                        });
                    });
                },
            );
            supervisor.progress().idle.begins();
            // SAFETY: the resources are filled, and this is the idle thread.
            unsafe { super::idle(runtime, me, &mut functions) };
            // A panic may have left jobs ready that no other thread runs.
            home.core().serve(me, None);
            supervisor.progress().idle.ends();
        } else {
            // SAFETY: this thread holds everything, and no thread has taken over yet.
            runtime
                .partitions
                .iter()
                .for_each(|partition| unsafe { partition.core().abandon(partition.enter_idle()) });
        }
    });
    forked::check(runtime);
    runtime.wait_for_stop();
    let mut ends = threads.join();
    // The thread of `idle`, which moves to its CPU after `init`.
    ends.push(filled.then(|| AtEnd { stack_used: None, settings: Effective::read() }));
    note_ends(&mut granted, ends);
    granted.notes.append(&mut supervisor.progress().hits.lock().unwrap_or_else(PoisonError::into_inner));
    drop(writer);
    logging.end();
    logging::write_out();
    drop(caller);
    drop(supervised);
    // SAFETY: every other thread of the run has ended.
    Ok(unsafe {
        super::finish(runtime, taken, filled.then_some(functions), false, granted, (profile, &guarded))
    })
}

/// Returns the polling partitions, which begin first because their threads still have to take them
/// over; and the others, in the order in which they are released.
///
/// If partitions share CPUs, a job of the first may delay this thread's release of the next. So the
/// highest go first, as if all were released at once. The home partition is last: without
/// privileges this thread runs its jobs.
fn starting_order(runtime: &Runtime) -> (Vec<&'static PartitionState>, Vec<&'static PartitionState>) {
    let mut partitions = runtime.partitions.to_vec();
    partitions.sort_by_key(|partition| (partition.is_home(), Reverse(partition.highest_level())));
    partitions.into_iter().partition(|partition| partition.model == ThreadModel::Polling)
}

/// Collects the settings that the kernel granted.
fn report_settings(
    runtime: &Runtime,
    plan: &Plan,
    threads: &[ThreadSettings],
    (memory, awake, marks): (&memory::Locked, &idle_states::Bound, &Marks),
    inherited: &Inherited,
) -> Settings {
    let mut idle = settings::ordinary("idle");
    idle.missing.extend(inherited.missing.clone());
    let mut notes = [marks.notes(), &inherited.notes].concat();
    notes.extend(linux::coarse_timers());
    for partition in runtime.partitions {
        let Some(cpu) = plan.cpu(partition) else { continue };
        notes.extend(cpu::isolation(cpu));
        notes.extend(awake.note(cpu));
        notes.extend(interference::throttling(cpu));
        notes.extend(interference::in_band(cpu, plan.band(partition)));
    }
    let mut seen = Vec::new();
    notes.retain(|note: &String| {
        !seen.contains(note) && {
            seen.push(note.clone());
            true
        }
    });
    // It moves there when `idle` starts, after `init`.
    idle.cpus = idle_cpus(runtime, plan);
    Settings {
        kernel: linux::kernel(),
        memory: memory::Locked::describe(),
        threads: threads.iter().cloned().chain([idle]).collect(),
        missing: memory.missing.iter().chain(&awake.missing).cloned().collect(),
        notes,
    }
}

/// Records the stack usage of each thread, with notes on threads that had little left, and on
/// changed settings.
fn note_ends(settings: &mut Settings, ends: Vec<Option<AtEnd>>) {
    for (thread, end) in settings.threads.iter_mut().zip(ends) {
        thread.stack_used = end.as_ref().and_then(|end| end.stack_used);
        settings.notes.extend(end.and_then(|end| thread.change(&end.settings)));
        if let (Some(size), Some(used)) = (thread.stack, thread.stack_used)
            && used > size / 10 * 9
        {
            settings.notes.push(format!(
                "thread {} has used {} of the {} KiB of its stack; give it more with `#[app(stack = ..)]`, \
                 `Config::stack` or PUNCTUAL_STACK, in KiB",
                thread.thread,
                used / 1024,
                size / 1024
            ));
        }
    }
}

/// Keeps background threads off the partitions' CPUs during the run, and restores this thread's
/// affinity afterwards.
struct Placement {
    before: Allowed,
}

impl Placement {
    fn new(plan: &Plan) -> Self {
        linux::set_background_cpus(Some(plan.background_cpus()));
        Self { before: plan.allowed.clone() }
    }

    /// Moves this thread to the CPUs of `idle`.
    fn idle(&self, runtime: &Runtime, plan: &Plan) {
        let pinned = match plan.cpu(runtime.home) {
            Some(cpu) => cpu::pin(cpu),
            None => plan.background_cpus().apply(),
        };
        if let Err(error) = pinned {
            let cpus = idle_cpus(runtime, plan);
            notice::warn(format_args!("idle does not run on CPU {cpus}: {error}"));
        }
    }
}

fn idle_cpus(runtime: &Runtime, plan: &Plan) -> String {
    plan.cpu(runtime.home).map_or_else(|| plan.background_cpus().to_string(), |cpu| cpu.to_string())
}

impl Drop for Placement {
    fn drop(&mut self) {
        linux::set_background_cpus(None);
        if let Err(error) = self.before.apply() {
            stderr::line(format_args!("this thread stays pinned: {error}"));
        }
    }
}

/// Warns of missing settings; once per process, regardless of the number of runs.
fn warn(settings: &Settings, missing: &[String]) {
    static SAID: Mutex<Vec<Vec<String>>> = Mutex::new(Vec::new());
    let mut printed = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if missing.is_empty() || printed.iter().any(|before| before == missing) {
        return;
    }
    printed.push(missing.to_vec());
    drop(printed);
    let refused =
        |thread: &ThreadSettings| thread.missing.iter().any(|what| what.starts_with(settings::NO_FIFO));
    let real_time = settings.threads.iter().any(|thread| thread.policy == "SCHED_FIFO");
    if real_time || !settings.threads.iter().any(refused) {
        notice::warn(format_args!("real-time settings are incomplete; timing is not guaranteed:"));
    } else {
        notice::warn(format_args!(
            "without real-time priorities; everything works, and no timing is guaranteed:"
        ));
    }
    missing.iter().for_each(|what| notice::warn(format_args!("  {what}")));
}
