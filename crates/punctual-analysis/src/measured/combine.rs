//! Combines the declared model and the profile into a system.

use punctual_report::format::format_part;

use super::Place;
use super::file::{
    Access, Distance, Hold, Model, ModelIdle, ModelTask, ModelUse, Profile, ProfilePartition, ProfileTask,
};
use crate::arrival::Stream;
use crate::schema::file::{ExecutorEntry, ProtocolEntry};
use crate::schema::{MAX_ENTRIES, MAX_PARTITIONS, Problem, Step, check_length};
use crate::system::{
    Executor, Interrupt, Nesting, Observed, Overheads, Partition, Profiling, Protocol, Resource, Section,
    Spawn, Suspension, System, Task,
};
use crate::time::{MAX_TIME, Nanos};

type Result<T> = std::result::Result<T, Place>;

pub(super) fn combine(
    mut model: Model,
    mut profile: Profile,
    cpus: Option<u64>,
    without: &[String],
) -> Result<System> {
    if model.app != profile.app {
        let what = format!("this is a profile of `{}`, and the model is of `{}`", profile.app, model.app);
        return in_profile(&[Step::Key("app")], what, "profile the app that the model is of");
    }
    leave_out(&mut model, &mut profile, without)?;
    let idle_tasks = without_jobs(&model, &profile);
    leave_out(&mut model, &mut profile, &idle_tasks)?;
    let Model { app, partitions, tasks, resources, idle, .. } = model;
    let lengths = [
        ("partitions", partitions.len(), MAX_PARTITIONS),
        ("tasks", tasks.len(), MAX_ENTRIES),
        ("resources", resources.len(), MAX_ENTRIES),
    ];
    for (kinds, length, most) in lengths {
        check_length(&[Step::Key(kinds)], kinds, length, most).map_err(Place::Model)?;
    }
    check_complete(&tasks, &profile)?;
    let mut combination =
        Combination { profile, names: Names::default(), system: System::default(), outside: Vec::new() };
    if combination.profile.tasks.iter().any(|task| task.spawns.is_none()) {
        let sentence = "Who spawns whom and who holds what for how long was not measured, since the app is declared without `profile`: \
                        spawns are not counted, and resources are taken to be held all the time.";
        combination.assume(sentence.into());
    }
    for name in without {
        combination.assume(format!("`{name}` is left out, as if it had no jobs."));
    }
    for name in &idle_tasks {
        combination.assume(format!(
            "`{name}` had no job while the profile was measured, so its C is unknown: the bounds hold as long as it has none."
        ));
    }
    combination.system.name = app;
    combination.names = Names {
        partitions: partitions.iter().map(|it| it.name.clone()).collect(),
        resources: resources.iter().map(|it| it.name.clone()).collect(),
        tasks: tasks.iter().map(|it| it.name.clone()).collect(),
    };
    let resource_count = resources.len();
    for (at, resource) in resources.into_iter().enumerate() {
        let protocol = match resource.protocol {
            ProtocolEntry::Srp => Protocol::Srp,
            // Group numbers are arbitrary; they become indices of a list that is at most twice as
            // long as the resources.
            ProtocolEntry::Msrp => Protocol::Msrp {
                group: resource.group.map_or(resource_count + at, |it| it.min(2 * resource_count)),
            },
            ProtocolEntry::Pcp => Protocol::Pcp,
            ProtocolEntry::None => Protocol::Unlocked,
        };
        combination.system.resources.push(Resource { name: resource.name, protocol, ceilings: Vec::new() });
    }
    for (at, partition) in partitions.into_iter().enumerate() {
        let path = [Step::Key("partitions"), Step::At(at), Step::Key("executor")];
        let executor = match (partition.executor, cpus) {
            (ExecutorEntry::Preemptive, _) => Executor::Preemptive,
            (ExecutorEntry::Polling, _) => Executor::Polling,
            (ExecutorEntry::Global, Some(cpus)) if cpus > 0 => Executor::Global { cpus },
            (ExecutorEntry::Global, _) => {
                let what = "the number of CPUs of the global executor is unknown";
                return in_model(&path, what, "state it by --cpus");
            }
        };
        let partition = combination.partition(partition.name, executor, partition.cpu);
        combination.system.partitions.push(partition);
        combination.outside.push(None);
    }
    for (at, task) in tasks.into_iter().enumerate() {
        let task = combination.task(at, task)?;
        combination.system.tasks.push(task);
    }
    combination.check_releases()?;
    combination.forget_equal_offsets();
    let is_virtual = combination.profile.clock.as_deref() == Some("virtual");
    if !is_virtual && combination.profile.partitions.iter().any(|it| it.profiling_ns.is_none()) {
        combination.assume(super::PROFILING_UNKNOWN.into());
    }
    combination.stolen();
    combination.idle(idle)?;
    combination.interrupts()?;
    let mut system = combination.system;
    system.update_ceilings();
    Ok(system)
}

fn in_model<T>(path: &[Step], what: impl Into<String>, fix: impl Into<String>) -> Result<T> {
    Err(Place::Model(Problem::new(path, what, fix)))
}

fn in_profile<T>(path: &[Step], what: impl Into<String>, fix: impl Into<String>) -> Result<T> {
    Err(Place::Profile(Problem::new(path, what, fix)))
}

/// Checks that every task was measured.
fn check_complete(tasks: &[ModelTask], profile: &Profile) -> Result<()> {
    let is_measured = |task: &&ModelTask| {
        let found = profile.tasks.iter().find(|it| it.name == task.name);
        found.is_some_and(|it| it.execution_max_ns.is_some() && it.jobs.is_none_or(|jobs| jobs > 0))
    };
    let missing: Vec<String> =
        tasks.iter().filter(|task| !is_measured(task)).map(|task| format!("`{}`", task.name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let what = format!("no job of {} was measured, so its C is not known", missing.join(", no job of "));
    let fix = "run the app for longer, or so that these tasks have work, or leave them out: --without NAME";
    in_profile(&[Step::Key("tasks")], what, fix)
}

/// Names of the tasks that were measured and had no job, unless that is all of them: then nothing
/// is known of the app.
fn without_jobs(model: &Model, profile: &Profile) -> Vec<String> {
    let had_none = |task: &&ModelTask| {
        profile.tasks.iter().any(|measured| measured.name == task.name && measured.jobs == Some(0))
    };
    let names: Vec<_> = model.tasks.iter().filter(had_none).map(|task| task.name.clone()).collect();
    if names.len() < model.tasks.len() { names } else { Vec::new() }
}

/// Removes tasks from the model and the profile, as if they had no jobs. Ceilings stay those of the
/// app.
fn leave_out(model: &mut Model, profile: &mut Profile, without: &[String]) -> Result<()> {
    for name in without {
        let Some(at) = model.tasks.iter().position(|task| task.name == *name) else {
            let what = format!("there is no task `{name}` to be left out");
            return in_model(&[Step::Key("tasks")], what, "name a task of the model after --without");
        };
        model.tasks.remove(at);
        profile.tasks.retain(|task| task.name != *name);
        for task in &mut profile.tasks {
            if let Some(spawns) = &mut task.spawns {
                spawns.retain(|spawn| spawn.task != *name);
            }
        }
    }
    Ok(())
}

#[derive(Default)]
struct Names {
    partitions: Vec<String>,
    resources: Vec<String>,
    tasks: Vec<String>,
}

struct Combination {
    profile: Profile,
    names: Names,
    system: System,
    /// Longest time that the rest of the machine took from a job, by partition, if C does not
    /// include it.
    outside: Vec<Option<Nanos>>,
}

/// Builds a stream from the distances of 2, 3, … releases; unknown ones use the next known
/// distance.
pub(super) fn observed_stream(distances: &[Distance]) -> Option<Stream> {
    let mut known: Vec<(u64, Nanos)> = distances
        .iter()
        .filter(|it| it.releases >= 2)
        .filter_map(|it| Some((it.releases, it.least_ns?)))
        .collect();
    known.sort_unstable();
    let most = known.last()?.0.min(4_096);
    let mut least = Vec::new();
    for releases in 2..=most {
        // More releases cannot be closer together, so the distance of fewer is a valid lower bound.
        let distance = known.iter().filter(|it| it.0 <= releases).map(|it| it.1).max().unwrap_or(0);
        least.push(distance.min(MAX_TIME));
    }
    (least.last() > Some(&0)).then(|| Stream::distances(least))
}

impl Combination {
    fn assume(&mut self, sentence: String) {
        self.system.assumptions.push(sentence);
    }

    fn partition(&mut self, name: String, executor: Executor, cpu: Option<u32>) -> Partition {
        let measured = self.profile.partitions.iter().find(|it| it.name == name);
        let cpu = cpu.or(measured.and_then(|it| it.cpu));
        let values =
            measured.map_or([None; 4], |it| [it.release_ns, it.dispatch_ns, it.lock_ns, it.preemption_ns]);
        let profiling = measured.map_or_else(Profiling::default, ProfilePartition::profiling);
        let whats = ["a release", "starting and ending a job", "locking", "a preemption"];
        for (value, what) in values.iter().zip(whats) {
            if value.is_none() {
                self.assume(format!(
                    "The cost of {what} in partition `{name}` was not measured and is not counted."
                ));
            }
        }
        let [release, dispatch, lock, preemption] = values.map(|value| value.unwrap_or(0).min(MAX_TIME));
        let overheads = Overheads { release, dispatch, lock, preemption };
        Partition { name, executor, cpu, overheads, profiling, ..Partition::default() }
    }

    fn task(&mut self, at: usize, task: ModelTask) -> Result<Task> {
        let path = [Step::Key("tasks"), Step::At(at)];
        let place = self.profile.tasks.iter().position(|it| it.name == task.name);
        let measured = place.map(|place| std::mem::take(&mut self.profile.tasks[place])).unwrap_or_default();
        // All other entries of the profile are found by name.
        let Some(partition) = self.names.partitions.iter().position(|name| *name == task.partition) else {
            let what = format!("`{}` is in partition `{}`, which there is not", task.name, task.partition);
            return in_model(&path, what, "write the model again: PUNCTUAL_MODEL=FILE ./app");
        };
        // Sources that take the CPU are known by name and period, or are assumed as long as the
        // longest observation.
        self.outside[partition] = self.outside[partition].max(measured.outside());
        let execution = measured.execution().unwrap_or(0).min(MAX_TIME);
        let arrivals = self.arrivals(&task, &measured, &path)?;
        let is_only_spawned = arrivals.is_some() && self.is_only_spawned(&task, &measured);
        let sections = self.sections(&task.name, &task.uses, measured.holds(), execution, &path)?;
        let spawns = self.spawns(&measured, place)?;
        let total = measured.suspension_max_ns.unwrap_or(0).min(MAX_TIME);
        let times = measured.suspensions_most_per_job;
        if total > 0 && times.is_none() {
            self.assume(format!(
                "The number of waits of a job of `{}` was not measured; one is assumed.",
                task.name
            ));
        }
        let observed = Observed {
            response: measured.response_max_ns,
            jobs: measured.jobs,
            misses: measured.deadline_misses,
        };
        let jitter = measured.lateness(task.period_ns.is_some());
        let suspension = (total > 0).then(|| Suspension { total, times: times.unwrap_or(1) });
        Ok(Task {
            name: task.name,
            partition,
            level: task.level,
            execution,
            arrivals,
            is_only_spawned,
            is_periodic: task.period_ns.is_some(),
            jitter: jitter.min(MAX_TIME),
            delay: measured.lateness_min_ns.unwrap_or(0).min(jitter).min(MAX_TIME),
            deadline: task.deadline_ns,
            offset: task.offset_ns,
            grid: task.offset_ns.filter(|_| task.period_ns.is_some()),
            sections,
            spawns,
            most_spawns: measured.spawns_most_per_job,
            suspension,
            observed,
        })
    }

    /// Removes equal offsets: if all tasks are released together, the worst case for any rate,
    /// offsets carry no information.
    fn forget_equal_offsets(&mut self) {
        let tasks = &mut self.system.tasks;
        let mut offsets = tasks.iter().filter_map(|task| task.offset);
        let first = offsets.next();
        if offsets.all(|offset| Some(offset) == first) {
            tasks.iter_mut().for_each(|task| task.offset = None);
        }
    }

    /// Returns the declared releases, or else the observed ones; `None` if other tasks spawn the
    /// task.
    fn arrivals(
        &mut self,
        task: &ModelTask,
        measured: &ProfileTask,
        path: &[Step],
    ) -> Result<Option<Stream>> {
        let positive = |value: Option<Nanos>| value.filter(|&ns| ns > 0 && ns <= MAX_TIME);
        if task.period_ns.is_some() || task.min_interval_ns.is_some() {
            let Some(window) = positive(task.period_ns.or(task.min_interval_ns)) else {
                return in_model(
                    path,
                    format!("the period of `{}` is 0 or beyond a year", task.name),
                    "correct it in the source",
                );
            };
            let burst = task.burst.filter(|_| task.period_ns.is_none()).unwrap_or(1).max(1);
            let declared = Stream::bursts(burst, 0, window);
            if task.period_ns.is_none() {
                for seen in &measured.inter_arrival {
                    let allowed = declared.distance(seen.releases).unwrap_or(0);
                    if let Some(least) = seen.least_ns.filter(|&least| least < allowed) {
                        self.assume(format!(
                            "`{}` was released {} times within {least} ns, and declares that this takes {allowed} ns: no bound \
                             holds for runs in which it does so.",
                            task.name, seen.releases
                        ));
                        break;
                    }
                }
            }
            return Ok(Some(declared));
        }
        // Releases by others than jobs arrive as observed.
        if self.is_spawned(&task.name, measured) && measured.spawned_by_no_job.unwrap_or(0) == 0 {
            return Ok(None);
        }
        let Some(stream) = observed_stream(&measured.inter_arrival) else {
            let what = format!("the release rate of `{}` is unknown", task.name);
            let fix = "give it `min_interval = …` in the source, or profile a run in which it is released more than once";
            return in_model(path, what, fix);
        };
        let jobs = measured.jobs.map_or(String::new(), |jobs| format!(" of {jobs} jobs"));
        self.assume(format!(
            "`{}` declares no `min_interval`: the least distances{jobs} in the run are taken for the least there are.",
            task.name
        ));
        Ok(Some(stream))
    }

    /// Returns whether jobs of the app were observed to spawn the task.
    fn is_spawned(&self, name: &str, measured: &ProfileTask) -> bool {
        let spawned = |it: &ProfileTask| it.spawns().iter().any(|spawn| spawn.task == name);
        // Measurements of earlier tasks are already in the system.
        let by_earlier = self.system.tasks.iter().any(|other| {
            other.spawns.iter().any(|spawn| self.names.tasks.get(spawn.task).is_some_and(|it| it == name))
        });
        by_earlier || spawned(measured) || self.profile.tasks.iter().any(spawned)
    }

    /// Returns whether only jobs of the app were observed to spawn a task with independent
    /// releases.
    fn is_only_spawned(&mut self, task: &ModelTask, measured: &ProfileTask) -> bool {
        let is = task.period_ns.is_none()
            && measured.spawned_by_no_job == Some(0)
            && self.is_spawned(&task.name, measured);
        if is {
            self.assume(format!(
                "`{}` was spawned by jobs only; other threads are assumed never to spawn it.",
                task.name
            ));
        }
        is
    }

    fn sections(
        &mut self,
        user: &str,
        uses: &[ModelUse],
        holds: &[Hold],
        longest: Nanos,
        path: &[Step],
    ) -> Result<Vec<Section>> {
        let mut sections = Vec::new();
        for used in uses {
            let Some(resource) = self.names.resources.iter().position(|name| *name == used.resource) else {
                let what = format!("`{user}` uses `{}`, which there is not", used.resource);
                return in_model(path, what, "write the model again: PUNCTUAL_MODEL=FILE ./app");
            };
            if used.access != Access::Lock {
                // The section counts only for the ceiling.
                sections.push(Section { resource, hold: 0, times: 0, nesting: Nesting::Outermost });
                continue;
            }
            let found = holds.iter().find(|hold| hold.resource == used.resource);
            let hold = found.and_then(|hold| hold.longest_ns);
            if hold.is_none() {
                self.assume(format!(
                    "`{user}` was not seen to lock `{}`: it is taken to hold it all the time.",
                    used.resource
                ));
            }
            let times = found.and_then(|hold| hold.most_per_job);
            let is_msrp = self.system.resources[resource].protocol.group().is_some();
            if times.is_none() && is_msrp {
                self.assume(format!(
                    "The number of times that a job of `{user}` locks `{}` was not measured; one is assumed.",
                    used.resource
                ));
            }
            let others = uses.iter().filter(|it| it.access == Access::Lock).count() > 1;
            if others && found.is_none_or(|hold| hold.nested.is_none()) && is_msrp {
                self.assume(format!(
                    "It was not measured whether jobs of `{user}` lock `{}` while they hold another resource; they are taken \
                     to do so inside every other section.",
                    used.resource
                ));
            }
            // Work at higher levels during the section is not part of the hold.
            sections.push(Section {
                resource,
                hold: hold.unwrap_or(longest).min(longest),
                times: times.unwrap_or(1),
                nesting: found.map_or(Nesting::Unknown, Hold::nesting),
            });
        }
        Ok(sections)
    }

    fn spawns(&self, measured: &ProfileTask, place: Option<usize>) -> Result<Vec<Spawn>> {
        let mut spawns = Vec::new();
        // Without a profile, an app reaches its spawns earlier by the profiling cost of its
        // critical sections, all of which may precede the spawn.
        let resource_count = self.profile.partitions.iter().map(|it| it.profiling().lock);
        let holds = measured.holds().iter().map(|hold| hold.most_per_job.unwrap_or(0));
        let profiled = holds.fold(0, Nanos::saturating_add).saturating_mul(resource_count.max().unwrap_or(0));
        for spawn in measured.spawns().iter().filter(|spawn| spawn.most_per_job > 0) {
            let Some(task) = self.names.tasks.iter().position(|name| *name == spawn.task) else {
                let path = [Step::Key("tasks"), Step::At(place.unwrap_or(0)), Step::Key("spawns")];
                let what = format!("it spawns `{}`, which the model does not have", spawn.task);
                return in_profile(&path, what, "profile the app that the model is of");
            };
            let earliest = spawn.earliest_ns.unwrap_or(0).saturating_sub(profiled).min(MAX_TIME);
            let in_section = spawn.in_section.unwrap_or(true);
            spawns.push(Spawn { task, most: spawn.most_per_job, earliest, in_section });
        }
        Ok(spawns)
    }

    /// Reports time that the host of a virtual machine took. C, J and the time taken from jobs
    /// include it; it does not have a separate model.
    fn stolen(&mut self) {
        let run = self.profile.duration_ns.unwrap_or(0);
        let partitions = self.profile.partitions.iter();
        let taken = partitions.filter_map(|it| Some((it, it.stolen_ns.filter(|&stolen| stolen > 0)?)));
        let sentences = taken.map(|(it, stolen)| {
            let cpu = it.cpu.map_or(String::new(), |cpu| format!(", CPU {cpu}"));
            format!(
                "This is a virtual machine, whose host took {} of the {} of the run from `{}`{cpu} (steal time, as the kernel counts it, in steps of \
                 a tick). It is in the C, the J and the responses of the jobs that it came to. A host may take as much again at any time, or \
                 more: no bound holds for that.",
                format_part(stolen),
                format_part(run),
                it.name
            )
        });
        let sentences: Vec<String> = sentences.collect();
        sentences.into_iter().for_each(|sentence| self.assume(sentence));
    }

    /// Checks that no task is released only by itself.
    fn check_releases(&self) -> Result<()> {
        match crate::schema::cycle(&self.system) {
            None => Ok(()),
            Some((at, names)) => in_model(
                &[Step::Key("tasks"), Step::At(at)],
                format!("jobs of {names} spawn each other without end"),
                "give one of them `min_interval = …` in the source, which bounds its releases by any spawner",
            ),
        }
    }

    fn idle(&mut self, idle: Option<ModelIdle>) -> Result<()> {
        let Some(ModelIdle { partition: Some(partition), uses }) = idle else { return Ok(()) };
        let Some(partition) = self.names.partitions.iter().position(|name| *name == partition) else {
            return Ok(());
        };
        let holds = self.profile.idle.take().map_or_else(Vec::new, |idle| idle.holds);
        for used in uses.iter().filter(|used| used.access == Access::Lock) {
            let resource = self.names.resources.iter().position(|name| *name == used.resource);
            let found = holds.iter().find(|hold| hold.resource == used.resource);
            match (resource, found.and_then(|found| Some((found.longest_ns?, found.nesting())))) {
                (Some(resource), Some((hold, nesting))) => {
                    let section = Section { resource, hold: hold.min(MAX_TIME), times: 1, nesting };
                    self.system.partitions[partition].idle_sections.push(section);
                }
                _ => self.assume(format!(
                    "The time for which `idle` holds `{}` was not measured and is not counted as blocking.",
                    used.resource
                )),
            }
        }
        Ok(())
    }

    fn interrupts(&mut self) -> Result<()> {
        let interrupts = std::mem::take(&mut self.profile.interrupts);
        for (at, interrupt) in interrupts.into_iter().enumerate() {
            let path = [Step::Key("interrupts"), Step::At(at)];
            let Some(partition) = self.names.partitions.iter().position(|name| *name == interrupt.partition)
            else {
                let what = format!(
                    "`{}` is in partition `{}`, which there is not",
                    interrupt.name, interrupt.partition
                );
                return in_profile(&path, what, "name a partition of the model");
            };
            let Some(arrivals) = observed_stream(&interrupt.inter_arrival) else {
                // It occurred once, so its distance is unknown.
                self.assume(format!("`{}` came once: it is not counted.", interrupt.name));
                continue;
            };
            let execution = interrupt.execution_max_ns.min(MAX_TIME);
            self.system.interrupts.push(Interrupt { name: interrupt.name, partition, execution, arrivals });
        }
        if !self.system.interrupts.is_empty() || self.profile.clock.as_deref() == Some("virtual") {
            return Ok(());
        }
        let run = self.profile.duration_ns.unwrap_or(MAX_TIME).clamp(1, MAX_TIME);
        for (partition, outside) in std::mem::take(&mut self.outside).into_iter().enumerate() {
            let Some(execution) = outside.filter(|&outside| outside > 0) else { continue };
            let (name, arrivals) = (super::THE_REST.to_owned(), Stream::sporadic(run));
            self.system.interrupts.push(Interrupt {
                name,
                partition,
                execution: execution.min(MAX_TIME),
                arrivals,
            });
        }
        self.assume(match self.system.interrupts.is_empty() {
            true => super::NO_INTERRUPTS.into(),
            false => super::SEEN_BY_JOBS.into(),
        });
        Ok(())
    }
}
