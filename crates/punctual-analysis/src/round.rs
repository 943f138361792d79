//! One round of the analysis: the sources that each task competes with, given the responses known
//! so far.

use crate::arrival::Stream;
use crate::blocking::{self, Held, Spinning};
use crate::bound::{Blocking, Bound, Exactness, Interferer, NoBound, Outcome};
use crate::demand::{self, Share, SlimSources, Source};
use crate::preemptive::{Before, Contest};
use crate::release::{Release, Releases, in_window, releases};
use crate::supply::Supply;
use crate::system::{Executor, Overheads, Partition, Protocol, Section, Spawn, System, Task};
use crate::time::Nanos;
use crate::{branches, global, grid, offsets, polling, suspension, work};

/// Competing sources of all tasks, given the known responses.
#[derive(Debug)]
pub(crate) struct Rivals {
    /// Releases of each task, or the reason why they are unknown.
    releases: Vec<Result<Releases, NoBound>>,
    spinning: Result<Spinning, NoBound>,
    pub(crate) partitions: Vec<Rivalry>,
    /// Sources of each task that differ from those of its partition; empty if none differ.
    special: Vec<Option<Vec<Source>>>,
    /// Sources above all levels that each task may meet, if not all of them; empty if all tasks may
    /// meet all.
    met: Vec<Option<Met>>,
    /// True if the releases of all tasks, and the responses that others depend on, are known.
    are_known: bool,
    /// True if any task is spawned.
    any_spawned: bool,
    /// True if any task suspends itself.
    any_waits: bool,
    /// Tasks, highest level first.
    order: Vec<usize>,
}

/// Sources above all levels that a spawned task may meet.
#[derive(Debug)]
struct Met {
    above_all: Vec<Source>,
    /// The sources whose jobs have ended in any window when the task is spawned.
    over: Vec<Source>,
}

/// Sources of a partition.
#[derive(Debug)]
pub(crate) struct Rivalry {
    /// Sources above all levels.
    pub(crate) above_all: Vec<Source>,
    /// Sources of tasks, highest level first; those of one task are adjacent.
    pub(crate) tasks: Vec<Source>,
    /// Task and level of each entry of `tasks`.
    levels: Vec<(usize, u32)>,
    /// For each task of the system, the number of entries of `tasks` above its level, and at or
    /// above it; zeros in other partitions.
    ranges: Vec<(usize, usize)>,
    /// Shares of `above_all`, and of the prefixes of `tasks`.
    shares: (Share, Vec<Share>),
    /// Compact form of the longest possible prefix of `above_all` and then `tasks`.
    slim: SlimSources,
    /// Blocking sections, longest first.
    held: Vec<Held>,
}

impl Rivalry {
    fn place(&mut self, tasks: usize) {
        self.ranges.resize(tasks, (0, 0));
        let mut from = 0;
        for level in self.levels.chunk_by(|a, b| a.1 == b.1) {
            let to = from + level.len();
            level.iter().for_each(|&(task, _)| self.ranges[task] = (from, to));
            from = to;
        }
    }

    /// Returns the state before the bound of the first task.
    fn before(&self) -> Before {
        Before::new(self.slim.len())
    }

    fn update_sums(&mut self) {
        self.shares = (Share::of_all(&self.above_all), Share::from_first(&self.tasks));
        self.slim = SlimSources::from_first(&self.above_all, &self.tasks);
    }
}

impl Rivals {
    /// `ends` contains the ends of spawned jobs, where they are known better than by the sum of
    /// responses.
    pub(crate) fn new(system: &System, responses: &[Result<Nanos, NoBound>], ends: &[Option<Nanos>]) -> Self {
        let releases = releases(system, responses, ends);
        // Each section may lie inside any other, and paths are compared with each other.
        let pairs = |(releases, task): (&Result<Releases, NoBound>, &Task)| {
            releases.as_deref().map_or(1, <[Release]>::len).pow(2) + task.sections.len().pow(2)
        };
        let pairs: usize = releases.iter().zip(&system.tasks).map(pairs).sum();
        work::count(pairs);
        let above: Vec<Vec<Source>> =
            (0..system.partitions.len()).map(|at| above_all(system, at, &releases)).collect();
        let spinning = Spinning::new(system, &above);
        let sources = |above_all| Rivalry {
            above_all,
            tasks: Vec::with_capacity(system.tasks.len()),
            levels: Vec::with_capacity(system.tasks.len()),
            ranges: Vec::new(),
            shares: Default::default(),
            slim: SlimSources::default(),
            held: Vec::new(),
        };
        let mut partitions: Vec<Rivalry> = above.into_iter().map(sources).collect();
        let order = by_level(&system.tasks);
        for &at in &order {
            let task = &system.tasks[at];
            let Rivalry { tasks, levels, .. } = &mut partitions[task.partition];
            let spin = spinning.as_ref().map_or(0, |spinning| spinning.of_job(system, at));
            for release in releases[at].iter().flatten() {
                tasks.push(of_task(system, at, release, spin, &responses[at]));
                levels.push((at, task.level));
            }
        }
        for (at, rivalry) in partitions.iter_mut().enumerate() {
            rivalry.place(system.tasks.len());
            rivalry.update_sums();
            if let Ok(spinning) = &spinning {
                rivalry.held = blocking::held(system, spinning, at, &releases);
            }
        }
        let is_spawned = |at: usize| releases[at].iter().flatten().any(Release::is_spawned);
        let special = |at: usize| {
            let own = &system.tasks[at];
            let mut sources = partitions[own.partition].tasks.clone();
            work::count(pairs);
            if work::is_exceeded() {
                return sources;
            }
            let of = order.iter().filter(|&&other| system.tasks[other].partition == own.partition);
            let windows = of.flat_map(|&other| {
                let of = releases[other].as_deref().unwrap_or_default();
                let own_release = match releases[at].as_deref() {
                    Ok([own]) if other != at => Some(own),
                    _ => None,
                };
                in_window(system, of, at, own_release).into_iter().map(move |it| (other, it))
            });
            for (source, (other, in_window)) in sources.iter_mut().zip(windows) {
                let is_spawned = in_window.is_some();
                if let Some(in_window) = in_window {
                    source.own = in_window;
                }
                // Lateness in displacing others does not affect the task itself.
                let lateness = match other == at {
                    true => 0,
                    false => suspension::lateness(&system.tasks[other], &responses[other]),
                };
                let of = &system.tasks[other];
                let jitter = if is_spawned { of.jitter } else { of.closer() };
                source.all = source.own.clone().with_jitter(jitter).with_jitter(lateness);
                if source.all.all().is_some() {
                    (source.rate, source.offset) = (0.0, None);
                }
            }
            let of = order.iter().filter(|&&other| system.tasks[other].partition == own.partition);
            let of: Vec<_> =
                of.flat_map(|&other| releases[other].iter().flatten().map(move |it| (other, it))).collect();
            branches::limit_all(system, at, &of, &mut sources);
            // One source of a task represents all paths from below, so it has the cost of the most
            // expensive one.
            for of_task in sources.chunk_by_mut(|a, b| a.who == b.who) {
                let preempting = of_task.iter().map(|it| it.preempting).max().unwrap_or(0);
                let from_below = of_task.iter_mut().filter(|it| it.all.all().is_some());
                from_below.for_each(|it| it.preempting = preempting);
            }
            sources
        };
        let any_spawned = (0..system.tasks.len()).any(is_spawned);
        let is_special = |at: usize| any_spawned || system.tasks[at].suspension.is_some();
        let tasks = 0..system.tasks.len();
        let special = match tasks.clone().any(is_special) {
            true => tasks.clone().map(|at| is_special(at).then(|| special(at))).collect(),
            false => Vec::new(),
        };
        let are_known = tasks.clone().all(|at| is_known(system, &releases, responses, at));
        let met = match any_spawned && system.tasks.iter().any(|task| task.grid.is_some()) {
            true => tasks.map(|at| met(system, &releases, ends, &partitions, at)).collect(),
            false => Vec::new(),
        };
        let any_waits = system.tasks.iter().any(|task| task.suspension.is_some());
        Self { releases, spinning, partitions, special, met, are_known, any_spawned, any_waits, order }
    }

    /// Applies a new C, T or J of a task with its own releases, in a system without dependent
    /// responses and without spinning.
    pub(crate) fn update(&mut self, system: &System, at: usize) {
        work::count(system.tasks.len());
        let task = &system.tasks[at];
        let Some(own) = &task.arrivals else { return };
        let own = Release::of_root(system, at, own);
        let rivalry = &mut self.partitions[task.partition];
        let Rivalry { above_all, tasks, levels, .. } = rivalry;
        for (source, _) in tasks.iter_mut().zip(levels).filter(|(_, (of, _))| *of == at) {
            *source = of_task(system, at, &own, 0, &Ok(0));
        }
        for source in above_all.iter_mut().filter(|source| source.who == Interferer::Release(at)) {
            *source = of_release(system, at, &own);
        }
        rivalry.update_sums();
        self.releases[at] = Ok(Releases::One(own));
        if let Ok(spinning) = &self.spinning {
            rivalry.held = blocking::held(system, spinning, task.partition, &self.releases);
        }
    }
}

/// Returns the sources above all levels that a spawned task may meet, if it does not meet some of
/// them.
///
/// Windows of a job spawned from below are no longer than the job of its caller. In any other
/// window, releases at the instant of the root's release have ended when the root starts, and have
/// delayed the spawn by the same time.
fn met(
    system: &System,
    releases: &[Result<Releases, NoBound>],
    ends: &[Option<Nanos>],
    partitions: &[Rivalry],
    at: usize,
) -> Option<Met> {
    let Task { partition, level, .. } = system.tasks[at];
    let own = releases[at].as_deref().ok()?;
    let of_callers: Vec<_> =
        own.iter().map(|it| it.latest_end_of_lower_caller(system, partition, level)).collect();
    let is_from_below = of_callers.iter().all(Option::is_some);
    let ends = match own {
        [one] if !is_from_below && one.must_lie_in_window(system, partition, level) => vec![ends[at]],
        _ => of_callers,
    };
    let is_over = |source: &Source| match source.who {
        Interferer::Release(other) => grid::never_meets(system, at, own, &ends, other),
        _ => false,
    };
    let (over, above_all): (Vec<_>, Vec<_>) =
        partitions[partition].above_all.iter().cloned().partition(is_over);
    match (over.is_empty(), is_from_below) {
        (true, _) => None,
        (_, true) => Some(Met { above_all, over: Vec::new() }),
        (_, false) => Some(Met { above_all: [above_all, over.clone()].concat(), over }),
    }
}

/// Returns whether the effect of a task on others is known.
fn is_known(
    system: &System,
    releases: &[Result<Releases, NoBound>],
    responses: &[Result<Nanos, NoBound>],
    at: usize,
) -> bool {
    releases[at].is_ok() && (system.tasks[at].suspension.is_none() || responses[at].is_ok())
}

/// Returns the jobs of a task as a source for others.
fn of_task(
    system: &System,
    at: usize,
    release: &Release,
    spin: Nanos,
    response: &Result<Nanos, NoBound>,
) -> Source {
    let task = &system.tasks[at];
    let Overheads { dispatch, preemption, .. } = system.partitions[task.partition].overheads;
    let lateness = suspension::lateness(task, response);
    let own = release.own();
    // The end of a spawned job includes its full J.
    let jitter = if release.is_spawned() { task.jitter } else { task.closer() };
    Source {
        who: Interferer::Higher(at),
        rate: own.rate_estimate(),
        offset: release.offset,
        all: own.clone().with_jitter(jitter).with_jitter(lateness),
        own,
        execution: task.execution.saturating_add(spin),
        dispatch,
        preempting: dispatch.saturating_add(if release.is_called(system, at) { 0 } else { preemption }),
    }
}

/// Returns the kernel's work for the releases of a task as a source.
fn of_release(system: &System, at: usize, release: &Release) -> Source {
    let task = &system.tasks[at];
    let preempting = system.partitions[task.partition].overheads.release;
    let own = release.own().with_jitter(task.jitter);
    let (who, rate, offset) = (Interferer::Release(at), own.rate_estimate(), release.offset);
    Source { who, rate, offset, all: own.clone(), own, execution: 0, dispatch: 0, preempting }
}

/// One pass over all tasks.
#[derive(Clone, Copy)]
pub(crate) struct Round<'a> {
    pub(crate) system: &'a System,
    pub(crate) responses: &'a [Result<Nanos, NoBound>],
    pub(crate) rivals: &'a Rivals,
}

impl<'a> Round<'a> {
    pub(crate) fn partition(self, task: usize) -> &'a Partition {
        &self.system.partitions[self.system.tasks[task].partition]
    }

    pub(crate) fn bounds(self) -> Vec<Outcome> {
        let order = &self.rivals.order;
        let mut outcomes: Vec<Outcome> = order.iter().map(|_| Err(NoBound::TooLong)).collect();
        let mut before: Vec<Before> = self.rivals.partitions.iter().map(Rivalry::before).collect();
        let plain: Vec<Plain> =
            (0..self.system.partitions.len()).map(|at| Plain::new(self.system, at)).collect();
        for &at in order {
            let partition = self.system.tasks[at].partition;
            outcomes[at] = match self.partition(at).executor {
                Executor::Global { cpus } => self.global_bound(at, cpus, &outcomes),
                _ => self.bound(at, &plain[partition], &mut before[partition]),
            };
        }
        outcomes
    }

    /// Bounds a task of the global executor; `higher` contains the outcomes of higher levels.
    fn global_bound(self, at: usize, cpus: u64, higher: &[Outcome]) -> Outcome {
        self.check(at)?;
        let above_all = &self.rivals.partitions[self.system.tasks[at].partition].above_all;
        global::bound(self.system, at, cpus, above_all, higher)
    }

    /// Bounds one task of a single-CPU partition.
    pub(crate) fn bound_of(self, at: usize) -> Outcome {
        let partition = self.system.tasks[at].partition;
        let before = &mut self.rivals.partitions[partition].before();
        self.bound(at, &Plain::new(self.system, partition), before)
    }

    /// Bounds a task of a single-CPU partition. `before` is the result of the next higher task.
    fn bound(self, at: usize, plain: &Plain, before: &mut Before) -> Outcome {
        let contest = self.contest(at)?;
        self.check_load(&contest)?;
        let Some(mut bound) = contest.bound(self.exactness(at, plain), before) else {
            return Err(NoBound::TooLong);
        };
        if matches!(self.rivals.releases[at].as_deref(), Ok([release]) if release.is_spawned()) {
            bound.since_root = contest.end()?;
        }
        match offsets::bound(&contest) {
            Some(shorter) if shorter.response < bound.response => {
                Ok(Bound { without_offsets: Some(bound.response), ..shorter })
            }
            _ => Ok(bound),
        }
    }

    /// Returns whether a task of a single-CPU partition meets its deadline.
    pub(crate) fn meets(self, at: usize, deadline: Nanos) -> bool {
        let contest = self.contest(at);
        let is_met = |contest: Contest<'_>| {
            // A clear overload; otherwise exact sums decide, which take longer.
            if contest.load_estimate() > 1.000_001 * contest.supply.rate_estimate() {
                return Ok(false);
            }
            self.check_load(&contest)?;
            Ok(contest.responds_within(deadline).unwrap_or(false)
                || offsets::responds_within(&contest, deadline))
        };
        contest.and_then(is_met).unwrap_or(false)
    }

    /// Returns the sources that a task of a single-CPU partition competes with.
    // Always: the contest is large, and would be copied twice.
    #[inline(always)]
    fn contest(self, at: usize) -> Result<Contest<'a>, NoBound> {
        self.check(at)?;
        let (task, partition) = (&self.system.tasks[at], self.partition(at));
        let spinning = self.rivals.spinning.as_ref().map_err(Clone::clone)?;
        let Rivalry { above_all, tasks, levels, ranges, shares, slim, held } =
            &self.rivals.partitions[task.partition];
        let special = self.rivals.special.get(at).and_then(Option::as_ref);
        let tasks = special.unwrap_or(tasks);
        let met = self.rivals.met.get(at).and_then(Option::as_ref);
        let above_all = met.map_or(above_all.as_slice(), |met| &met.above_all);
        let (from, to) = ranges[at];
        let waits = self.rivals.any_waits && suspension::waits(self.system, task);
        let (level, above) = if waits {
            // While a job suspends itself, it and its peers may overtake each other.
            let first = levels.iter().position(|&(other, _)| other == at).unwrap_or(from);
            let last = first + levels[first..].iter().take_while(|&&(other, _)| other == at).count();
            (&tasks[first..last], [above_all, &tasks[..first], &tasks[last..to]])
        } else {
            (&tasks[from..to], [above_all, &tasks[..from], &[]])
        };
        let times = task.suspension.map_or(0, |suspension| suspension.times);
        let callers = self.callers_from_below(at);
        let mut blocking =
            blocking::longest(self.system, spinning, held, at, &self.rivals.releases, callers.as_deref());
        if let Some(Blocking { time, times: total, .. }) = &mut blocking {
            *total = times.saturating_add(1);
            *time = time.checked_mul(*total).ok_or(NoBound::TooLong)?;
        }
        let (share, slim) = match special.is_some() || met.is_some() || waits {
            true => (above.iter().map(|it| Share::of_all(it)).fold(Share::default(), Share::plus), None),
            false => (shares.0.plus(shares.1[from]), slim.first(above_all.len() + from)),
        };
        // Only for a task alone at its level is the work before its spawn known.
        let over = met.filter(|_| level.len() == 1).map_or(&[][..], |met| &met.over);
        Ok(Contest {
            supply: partition.supply,
            task: at,
            jitter: task.jitter,
            suspension: task.suspension.map_or(0, |suspension| suspension.total),
            spinning: spinning.of_job(self.system, at),
            blocking,
            level,
            above,
            slim,
            share,
            spawned_after: self.spawned_after(at, level),
            over,
            runs_to_end: polling::runs_to_end(self.system, at),
        })
    }

    /// Returns the tasks that spawn a task from within a section, if only lower levels of its
    /// partition spawn it.
    ///
    /// Such a job runs when it spawns, so no other job holds a resource that blocks the task (Baker
    /// 1991), and neither does it unless it spawns within a section. Not applicable if a job
    /// suspends itself.
    fn callers_from_below(self, at: usize) -> Option<Vec<usize>> {
        let is_spawned = || self.rivals.releases[at].iter().flatten().any(Release::is_spawned);
        if !self.rivals.any_spawned || !is_spawned() {
            return None;
        }
        let Task { partition, level, .. } = self.system.tasks[at];
        let waits = |task: &Task| task.partition == partition && task.suspension.is_some();
        if self.partition(at).executor != Executor::Preemptive || self.system.tasks.iter().any(waits) {
            return None;
        }
        let releases = self.rivals.releases[at].as_ref().ok()?;
        let callers = releases.iter().map(|it| it.caller_from_below(self.system, partition, level));
        let callers: Vec<_> = callers.collect::<Option<_>>()?;
        Some(callers.into_iter().filter(|&(_, in_section)| in_section).map(|(caller, _)| caller).collect())
    }

    /// Returns the time that a caller in the busy window runs before it spawns the task, if no job
    /// of its level can overtake it.
    fn spawned_after(self, at: usize, level: &[Source]) -> Nanos {
        match (self.rivals.releases[at].as_deref(), level) {
            (Ok([release]), [_])
                if self.rivals.any_spawned && self.partition(at).executor == Executor::Preemptive =>
            {
                let task = &self.system.tasks[at];
                release.spawned_after(self.system, task.partition, task.level)
            }
            _ => 0,
        }
    }

    /// Checks that everything that this bound depends on has a bound.
    fn check(self, at: usize) -> Result<(), NoBound> {
        let task = &self.system.tasks[at];
        if let Err(reason) = &self.rivals.releases[at] {
            return Err(reason.clone());
        }
        if self.rivals.are_known {
            return Ok(());
        }
        for (other, rival) in self.system.tasks.iter().enumerate() {
            if rival.partition != task.partition || other == at {
                continue;
            }
            let is_unknown = !is_known(self.system, &self.rivals.releases, self.responses, other);
            let matters = rival.level >= task.level || self.partition(at).overheads.release > 0;
            if is_unknown && matters {
                return Err(NoBound::DependsOn(other));
            }
        }
        Ok(())
    }

    /// Checks that the utilization allows a bound.
    fn check_load(self, contest: &Contest<'_>) -> Result<(), NoBound> {
        // Exact sums take longer than the bound itself, and matter only near full utilization.
        if contest.load_estimate() < 0.999_999 * contest.supply.rate_estimate() {
            return Ok(());
        }
        let waiting = contest.suspension;
        let displacement = demand::utilization(contest.above.into_iter().flatten(), Source::cost);
        let own = demand::utilization(contest.level, |source| source.peer_cost().saturating_add(waiting));
        let utilization = displacement.plus(own);
        let supply = contest.supply.rate();
        // At full utilization, the busy window ends only if nothing delays its first jobs.
        let sources = contest.above.into_iter().flatten().chain(contest.level);
        let is_delayed =
            || contest.blocking.is_some() || sources.clone().any(|source| source.all.jitter() > 0);
        if utilization < supply || (utilization == supply && contest.supply == Supply::Full && !is_delayed())
        {
            return Ok(());
        }
        let task = &self.system.tasks[contest.task];
        let levels = &self.rivals.partitions[task.partition].levels;
        let mut tasks: Vec<usize> =
            levels.iter().take_while(|&&(_, level)| level >= task.level).map(|&(at, _)| at).collect();
        tasks.dedup();
        let executing = displacement.plus(demand::utilization(contest.level, Source::peer_cost));
        if waiting > 0 && executing < supply {
            tasks.retain(|&at| at != contest.task);
            return Err(NoBound::Suspension { displacing: tasks, own, displacement });
        }
        Err(NoBound::Overload { tasks, utilization, supply })
    }

    /// Returns whether the bound of this task is attained.
    fn exactness(self, at: usize, plain: &Plain) -> Exactness {
        let own = &self.system.tasks[at];
        // A job that ends while it holds a resource is not displaced at its end.
        let holds = own.sections.iter().map(|section| section.hold.saturating_mul(section.times));
        let holds = holds.fold(0, Nanos::saturating_add);
        let is_exact = plain.above.is_none_or(|highest| own.level > highest)
            && plain.below.is_none_or(|lowest| own.level <= lowest)
            && (holds == 0 || holds < own.execution);
        if is_exact { Exactness::Exact } else { Exactness::Sufficient }
    }
}

/// Levels of a partition whose bounds may be exact.
struct Plain {
    /// Exact only above this level: the highest one of a task that is not purely sporadic.
    above: Option<u32>,
    /// Exact only up to this level: the lowest one of a task that spins.
    below: Option<u32>,
}

impl Plain {
    fn new(system: &System, partition: usize) -> Self {
        let spins =
            |section: &Section| matches!(system.resources[section.resource].protocol, Protocol::Msrp { .. });
        let spins = |task: &Task| task.sections.iter().any(spins);
        let is_plain = |task: &Task| {
            task.arrivals.as_ref().is_some_and(Stream::is_sporadic)
                && task.offset.is_none()
                && task.suspension.is_none()
                && !spins(task)
        };
        let tasks = || system.tasks.iter().filter(|task| task.partition == partition);
        let Partition { overheads, executor, .. } = &system.partitions[partition];
        let is_called = |spawn: &Spawn| system.tasks[spawn.task].partition == partition;
        let calls = || system.tasks.iter().flat_map(|task| &task.spawns).any(is_called);
        // No bound is exact here.
        if *overheads != Overheads::default() || (*executor == Executor::Polling && calls()) {
            return Self { above: Some(u32::MAX), below: None };
        }
        let above = tasks().filter(|task| !is_plain(task)).map(|task| task.level).max();
        Self { above, below: tasks().filter(|task| spins(task)).map(|task| task.level).min() }
    }
}

/// Returns the tasks, highest level first, in source order within a level.
fn by_level(tasks: &[Task]) -> Vec<usize> {
    // One number for the level and the index takes a quarter of the time to sort.
    let key = |(at, task): (usize, &Task)| (u64::from(!task.level) << 32) | at as u64;
    let mut order: Vec<u64> = tasks.iter().enumerate().map(key).collect();
    order.sort_unstable();
    order.into_iter().map(|key| (key & u64::from(u32::MAX)) as usize).collect()
}

/// Returns the sources that displace all levels of a partition.
fn above_all(system: &System, partition: usize, releases: &[Result<Releases, NoBound>]) -> Vec<Source> {
    let source = |who, arrivals: Stream, execution| Source {
        who,
        rate: arrivals.rate_estimate(),
        offset: None,
        own: arrivals.clone(),
        all: arrivals,
        execution,
        dispatch: 0,
        preempting: 0,
    };
    let interrupts = system.interrupts.iter().enumerate().filter(|(_, it)| it.partition == partition);
    let interrupts =
        interrupts.map(|(at, it)| source(Interferer::Interrupt(at), it.arrivals.clone(), it.execution));
    let mut sources: Vec<Source> = interrupts.collect();
    let release = system.partitions[partition].overheads.release;
    for (at, task) in system.tasks.iter().enumerate() {
        if release > 0 && task.partition == partition && is_released_from_outside(system, at) {
            sources.extend(releases[at].iter().flatten().map(|own| of_release(system, at, own)));
        }
    }
    sources
}

/// Returns whether the kernel takes part in the releases of a task: by the clock, an event or
/// another CPU.
fn is_released_from_outside(system: &System, at: usize) -> bool {
    let own = &system.tasks[at];
    let spawns = |task: &&crate::system::Task| task.spawns.iter().any(|spawn| spawn.task == at);
    own.arrivals.is_some() || system.tasks.iter().filter(spawns).any(|task| task.partition != own.partition)
}
