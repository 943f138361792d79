//! A run in virtual time: `init` and `idle` on the calling thread, and every partition on one
//! thread.

use std::thread::{Builder, JoinHandle};

use punctual_core::{CurrentWorker, Instant};

use super::event_threads::Opened;
use super::functions::Functions;
use super::idle_watch::IdleWatch;
use super::stacks::{self, Stacks};
use crate::config::Config;
use crate::observe::guard::{Guarded, WatchedThread};
use crate::observe::profile::Profile;
use crate::port::linux::stack::Bounds;
use crate::report::{Report, Settings};
use crate::start_error::StartError;
use crate::state::RunGuard;
use crate::state::fault;
use crate::state::partition::{PartitionState, ThreadModel};
use crate::state::runtime::Runtime;
use crate::state::thread::Member;
use crate::state::{forked, virtual_time};
use crate::stop::Culprit;

pub(super) fn run(
    runtime: &'static Runtime,
    config: &Config,
    mut functions: Functions<'_>,
    taken: &RunGuard,
) -> Result<Report, StartError> {
    let home = runtime.home;
    let stacks = Stacks::new(runtime, config)?;
    let system =
        |error: rustix::io::Errno| StartError::System { attempt: "making an epoll set", error: error.into() };
    let _opened = Opened::new(runtime, false).map_err(system)?;
    let profile = config.platform.profile.as_deref();
    let profile = profile.map(|path| Profile::begin(runtime, path, None)).transpose()?;
    let guarded = Guarded::begin(runtime, config.platform.guard);
    for partition in runtime.partitions {
        // SAFETY: the app is taken, so no thread of another run is left. Those of the other
        // partitions take over with their first turn; after that this thread no longer uses those
        // workers.
        let idle = unsafe { partition.enter_idle() };
        idle.enter(0, false);
        // SAFETY: there is one thread for each partition, of which this is the worker.
        unsafe {
            match partition.model {
                ThreadModel::Polling => idle.set_polling(),
                _ => idle.set_alone(),
            }
        }
        if partition.model == ThreadModel::Polling {
            partition.core.begin_polling();
        }
        partition.core.hold_all_jobs(idle);
    }
    // SAFETY: as above.
    let me = unsafe { home.enter_idle() };
    // Until the end: the hook is part of the app, with its clock.
    let _member = Member::join(home, me);
    let _watched = WatchedThread::begin(runtime);
    let start = Instant::from_ticks(0);
    virtual_time::start_turns(home, config.until.map(|until| start + until));
    let others = match Others::start(runtime, &stacks) {
        Ok(others) => others,
        Err(error) => return Err(StartError::System { attempt: "starting a thread of virtual time", error }),
    };
    // Until the end of the run: a thread that starts allocates, and one that ends frees memory.
    let watch = functions.has_idle.then(|| IdleWatch::begin(home));

    // SAFETY: everything is held, and a taken app has no resources filled.
    let filled = unsafe { super::init(runtime, me, &mut functions) };
    runtime.set_started(start);
    if filled {
        // SAFETY: the resources are filled and no job runs.
        unsafe { super::refresh_sources(runtime) };
        runtime.set_grid(start);
        runtime.partitions.iter().for_each(|partition| virtual_time::lay_grids(partition));
        runtime.host.turns.begin_with_guest(home.index());
        // SAFETY: this thread holds everything, and `init` has ended.
        unsafe { virtual_time::begin(home, me) };
        // Only a bug of ours panics in here. Then the other threads are not left waiting for their
        // turns.
        fault::contained(runtime, Culprit::Executor, || {
            virtual_time::settle(home, me);
            watch.iter().for_each(IdleWatch::entered);
            // SAFETY: the resources are filled, and this is the idle thread.
            unsafe { super::idle(runtime, me, &mut functions) };
            watch.iter().for_each(IdleWatch::left);
            live(home, me);
        });
    } else {
        // SAFETY: this thread holds everything, and `init` has ended.
        unsafe { home.core.abandon(me) };
    }
    retire(home, me);
    runtime.host.turns.leave(home.index());
    others.join();
    runtime.host.turns.end_guest();
    let settings = Settings { notes: guarded.notes().to_vec(), ..Settings::default() };
    // SAFETY: every other thread of the run has ended.
    Ok(unsafe {
        super::finish(runtime, taken, filled.then_some(functions), true, settings, (profile, &guarded))
    })
}

/// Runs the events of `partition` until the app stops, and then the jobs released before.
fn live(partition: &'static PartitionState, me: CurrentWorker) {
    while !partition.core.is_stopping() {
        virtual_time::step(partition, me);
    }
    virtual_time::mark_pushed(partition, me);
    partition.core.serve(me, None);
    forked::check(partition.runtime);
}

/// Drops the values that have to be dropped on the partition's thread, which this is.
fn retire(partition: &'static PartitionState, me: CurrentWorker) {
    // SAFETY: only this thread runs jobs of the partition, and it has run the last.
    partition.core.levels().iter().for_each(|level| unsafe { partition.retire(me, level) });
}

/// The threads of the other partitions.
struct Others(Vec<JoinHandle<()>>);

impl Others {
    fn start(runtime: &'static Runtime, stacks: &Stacks) -> std::io::Result<Self> {
        let mut others = Self(Vec::new());
        let mut partitions = runtime.away();
        while let Some(partition) = partitions.next() {
            let size = stacks.size(partition, partition.idle.base());
            let started = Builder::new().name(partition.name.into()).stack_size(size).spawn(move || {
                let _watched = stacks::watch(Bounds::of_this_thread());
                runtime.host.turns.wait(partition.index());
                // SAFETY: the thread that started this one has left the partition to it, or has
                // given up the run and does so.
                let me = unsafe { partition.enter_idle() };
                let _member = Member::join(partition, me);
                let _watched = WatchedThread::begin(partition.runtime);
                let body = || {
                    // SAFETY: everything has been held since the start.
                    unsafe { virtual_time::begin(partition, me) };
                    live(partition, me);
                    retire(partition, me);
                };
                // Jobs' panics are caught in the job; one that arrives here is the executor's own.
                fault::contained(runtime, Culprit::Executor, body);
                runtime.host.turns.leave(partition.index());
            });
            match started {
                Ok(thread) => others.0.push(thread),
                Err(error) => {
                    runtime.give_up();
                    for partition in std::iter::once(partition).chain(partitions) {
                        runtime.host.turns.forget(partition.index());
                        // SAFETY: it has no thread, and everything has been held since the start.
                        unsafe { partition.core.abandon(partition.enter_idle()) };
                    }
                    // SAFETY: this is its thread, and everything has been held since the start.
                    unsafe { runtime.home.core.abandon(runtime.home.enter_idle()) };
                    runtime.host.turns.leave(runtime.home.index());
                    others.join();
                    return Err(error);
                }
            }
        }
        Ok(others)
    }

    fn join(self) {
        for thread in self.0 {
            // They do not unwind.
            let _ = thread.join();
        }
    }
}
