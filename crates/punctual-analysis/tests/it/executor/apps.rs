//! Apps with fixed levels and resources, whose jobs follow a plan: release, execution and holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual::Duration;

/// Tasks of every app, with their levels. Only jobs of `caller` and `top` release `called`, and
/// only those of `top` release `later`.
pub(crate) const TASKS: [(&str, u32); 8] = [
    ("top", 7),
    ("called", 6),
    ("high", 5),
    ("peer", 4),
    ("other", 4),
    ("caller", 3),
    ("low", 1),
    ("later", 2),
];

/// Work of a job.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    pub(crate) nominal: u64,
    /// Nominal release of the spawning job, if any.
    pub(crate) root: Option<u64>,
    pub(crate) before: u64,
    /// Resource (`one`, `two` or `three`) and length of its hold.
    pub(crate) hold: Option<(usize, u64)>,
    pub(crate) after: u64,
    /// Task and execution time of the job that it spawns before `after`.
    pub(crate) spawns: Option<(usize, u64)>,
}

/// A planned job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned {
    pub(crate) task: usize,
    pub(crate) ready: u64,
    pub(crate) work: Work,
}

pub(crate) type Plan = Vec<Planned>;

/// Longest response of each task, and for spawned tasks the longest time since the release of the
/// spawning job.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    responses: [AtomicU64; TASKS.len()],
    reactions: [AtomicU64; TASKS.len()],
}

impl Seen {
    fn note(&self, task: usize, work: Work) {
        // Relaxed: read after the end of the run.
        self.responses[task].fetch_max(now() - work.nominal, Ordering::Relaxed);
        if let Some(root) = work.root {
            self.reactions[task].fetch_max(now() - root, Ordering::Relaxed);
        }
    }

    pub(crate) fn response(&self, task: usize) -> u64 {
        self.responses[task].load(Ordering::Relaxed)
    }

    pub(crate) fn reaction(&self, task: usize) -> u64 {
        self.reactions[task].load(Ordering::Relaxed)
    }
}

fn now() -> u64 {
    punctual::now().as_ticks()
}

fn spend(ns: u64) {
    if ns > 0 {
        punctual::spend(Duration::from_ticks(ns));
    }
}

/// Performs the work; `lock` holds a resource while it calls its argument.
fn perform(
    task: usize,
    seen: &Seen,
    work: Work,
    lock: impl FnOnce(usize, &mut dyn FnMut()),
    spawn: impl FnOnce(usize, Work),
) {
    spend(work.before);
    if let Some((resource, hold)) = work.hold {
        lock(resource, &mut || spend(hold));
    }
    if let Some((spawned, execution)) = work.spawns {
        spawn(
            spawned,
            Work { nominal: now(), root: Some(work.nominal), before: execution, ..Work::default() },
        );
    }
    spend(work.after);
    seen.note(task, work);
}

/// Defines an app with these partitions, and the partition of each half of the tasks.
macro_rules! app {
    ($name:ident, [$($partitions:tt)*], $here:tt, $there:tt) => {
        pub(crate) mod $name {
            #[punctual::app(main = false, partitions = [$($partitions)*])]
            mod app {
                use std::sync::Arc;

                use punctual::prelude::*;
                use punctual::Instant;

                use crate::executor::apps::{Plan, Seen, Work, no_lock, no_spawn, perform, unknown};

                #[shared]
                struct Shared {
                    seen: Arc<Seen>,
                    one: u32,
                    two: u32,
                    three: u32,
                }

                #[local]
                struct Local {}

                #[init]
                fn init(_: init::Context, plan: Plan, seen: Arc<Seen>) -> (Shared, Local) {
                    for job in plan {
                        let (at, work) = (Instant::from_ticks(job.ready), job.work);
                        let armed = match job.task {
                            0 => top::spawn_at(at, work).is_ok(),
                            2 => high::spawn_at(at, work).is_ok(),
                            3 => peer::spawn_at(at, work).is_ok(),
                            4 => other::spawn_at(at, work).is_ok(),
                            5 => caller::spawn_at(at, work).is_ok(),
                            6 => low::spawn_at(at, work).is_ok(),
                            task => unknown(task),
                        };
                        assert!(armed, "there is room for all jobs");
                    }
                    (Shared { seen, one: 0, two: 0, three: 0 }, Local {})
                }

                #[task(core = $here, priority = 7, capacity = 512, shared = [&seen, two])]
                fn top(mut cx: top::Context, work: Work) {
                    let lock = |_, hold: &mut dyn FnMut()| cx.shared.two.lock(|_| hold());
                    let spawn = |task, work| match task {
                        1 => assert!(called::spawn(work).is_ok()),
                        _ => assert!(later::spawn(work).is_ok()),
                    };
                    perform(0, cx.shared.seen, work, lock, spawn);
                }

                #[task(core = $there, priority = 6, capacity = 64, shared = [&seen])]
                fn called(cx: called::Context, work: Work) {
                    perform(1, cx.shared.seen, work, no_lock, no_spawn);
                }

                #[task(core = $here, priority = 5, capacity = 512, shared = [&seen, one])]
                fn high(mut cx: high::Context, work: Work) {
                    let lock = |_, hold: &mut dyn FnMut()| cx.shared.one.lock(|_| hold());
                    perform(2, cx.shared.seen, work, lock, no_spawn);
                }

                #[task(core = $there, priority = 4, capacity = 512, shared = [&seen, three])]
                fn peer(mut cx: peer::Context, work: Work) {
                    let lock = |_, hold: &mut dyn FnMut()| cx.shared.three.lock(|_| hold());
                    perform(3, cx.shared.seen, work, lock, no_spawn);
                }

                #[task(core = $there, priority = 4, capacity = 512, shared = [&seen])]
                fn other(cx: other::Context, work: Work) {
                    perform(4, cx.shared.seen, work, no_lock, no_spawn);
                }

                #[task(core = $there, priority = 3, capacity = 512, shared = [&seen])]
                fn caller(cx: caller::Context, work: Work) {
                    let spawn = |_, work| assert!(called::spawn(work).is_ok());
                    perform(5, cx.shared.seen, work, no_lock, spawn);
                }

                #[task(core = $there, priority = 2, capacity = 64, shared = [&seen])]
                fn later(cx: later::Context, work: Work) {
                    perform(7, cx.shared.seen, work, no_lock, no_spawn);
                }

                #[task(core = $here, priority = 1, capacity = 512, shared = [&seen, one, two, three])]
                fn low(mut cx: low::Context, work: Work) {
                    let shared = &mut cx.shared;
                    let lock = |resource, hold: &mut dyn FnMut()| match resource {
                        0 => shared.one.lock(|_| hold()),
                        1 => shared.two.lock(|_| hold()),
                        _ => shared.three.lock(|_| hold()),
                    };
                    perform(6, shared.seen, work, lock, no_spawn);
                }
            }

            pub(crate) use app::run;
        }
    };
}

fn no_lock(_: usize, _: &mut dyn FnMut()) {
    unreachable!("the task has no resource");
}

fn no_spawn(_: usize, _: Work) {
    unreachable!("the task spawns nothing");
}

fn unknown(task: usize) -> bool {
    unreachable!("jobs of task {task} are not planned");
}

app!(preemptive, [cpu], cpu, cpu);
app!(polling, [cpu(poll)], cpu, cpu);
app!(two, [here, there], here, there);

/// Runs the plan in one of the apps, in virtual time up to `until`, and returns the observations.
pub(crate) fn run(kind: Kind, plan: Plan, until: u64) -> Arc<Seen> {
    let seen = Arc::new(Seen::default());
    let config = punctual::Config::new().virtual_time().until(Duration::from_ticks(until));
    let ended = match kind {
        Kind::Preemptive => preemptive::run(config, plan, Arc::clone(&seen)),
        Kind::Polling => polling::run(config, plan, Arc::clone(&seen)),
        Kind::Two => two::run(config, plan, Arc::clone(&seen)),
    };
    ended.expect("virtual time has no requirements");
    seen
}

/// Kind of app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Preemptive,
    Polling,
    /// Two partitions, the first with `top`, `high` and `low`; `low` and `peer` share a resource.
    Two,
}
