//! Builds a system from the entries of a file: resolves names and checks constraints that types
//! cannot express.

use std::collections::{BTreeSet, HashMap, HashSet};

use punctual_report::escape::Printable;

use super::file::{
    ChainEntry, ExecutorEntry, File, InterruptEntry, PartitionEntry, ProtocolEntry, ResourceEntry,
    SectionEntry, SupplyEntry, TaskEntry,
};
use super::{MAX_ENTRIES, MAX_PARTITIONS, MAX_SECTIONS, Problem, Step, check_length};
use crate::arrival::Stream;
use crate::supply::Supply;
use crate::system::{
    Chain, Executor, Interrupt, Nesting, Observed, Overheads, Partition, Protocol, Resource, Section, Spawn,
    Suspension, System, Task,
};
use crate::time::{Nanos, Time};

type Result<T> = std::result::Result<T, Problem>;
type Path = Vec<Step>;

pub(super) fn build(file: File) -> Result<System> {
    let File { app, partition, resource, interrupt, task, chain, .. } = file;
    if task.is_empty() {
        return Err(Problem::new(
            &[Step::Key("task")],
            "there is no task",
            "add one: [[task]] with name, level, execution and period",
        ));
    }
    one_line(&[Step::Key("app")], "app", &app)?;
    let partitions = Table::new("partition", partition.iter().map(|it| it.name.clone()), MAX_PARTITIONS)?;
    let resources = Table::new("resource", resource.iter().map(|it| it.name.clone()), MAX_ENTRIES)?;
    let tasks = Table::new("task", task.iter().map(|it| it.name.clone()), MAX_ENTRIES)?;
    Table::new("interrupt", interrupt.iter().map(|it| it.name.clone()), MAX_ENTRIES)?;
    Table::new("chain", chain.iter().map(|it| it.name.clone()), MAX_ENTRIES)?;
    let names = Names { partitions, resources, tasks };
    let mut system = System { name: app, ..System::default() };
    system.resources =
        resource.into_iter().enumerate().map(|(at, it)| names.resource(at, it)).collect::<Result<_>>()?;
    system.partitions = if partition.is_empty() {
        vec![Partition::default()]
    } else {
        partition.into_iter().enumerate().map(|(at, it)| names.partition(at, it)).collect::<Result<_>>()?
    };
    system.interrupts =
        interrupt.into_iter().enumerate().map(|(at, it)| names.interrupt(at, it)).collect::<Result<_>>()?;
    system.tasks = task.into_iter().enumerate().map(|(at, it)| names.task(at, it)).collect::<Result<_>>()?;
    system.chains =
        chain.into_iter().enumerate().map(|(at, it)| names.chain(at, it)).collect::<Result<_>>()?;
    system.update_ceilings();
    check_releases(&system)?;
    check_protocols(&system)?;
    check_groups(&system)?;
    Ok(system)
}

/// Rejects a name that would affect a terminal or the lines of a report.
fn one_line(path: &[Step], kind: &str, name: &str) -> Result<()> {
    if Printable(name).is_unchanged() {
        return Ok(());
    }
    let what = format!("the name `{name}` of the {kind} has a control character");
    Err(Problem::new(path, what, "write letters, digits and other visible characters"))
}

/// The names of the entries of one kind.
struct Table {
    kind: &'static str,
    names: Vec<String>,
    places: HashMap<String, usize>,
}

impl Table {
    fn new(kind: &'static str, names: impl Iterator<Item = String>, most: usize) -> Result<Self> {
        let names: Vec<String> = names.collect();
        check_length(&[Step::Key(kind)], &format!("{kind}s"), names.len(), most)?;
        let mut places = HashMap::with_capacity(names.len());
        for (at, name) in names.iter().enumerate() {
            let path = [Step::Key(kind), Step::At(at), Step::Key("name")];
            if name.is_empty() {
                return Err(Problem::new(&path, format!("a {kind} has an empty name"), "give it a name"));
            }
            one_line(&path, kind, name)?;
            if places.insert(name.clone(), at).is_some() {
                let what = format!("two {kind}s are named `{name}`");
                return Err(Problem::new(&path, what, "rename one of them"));
            }
        }
        Ok(Self { kind, names, places })
    }

    /// Returns the index of the entry with this name, which the value at `path` refers to.
    fn find(&self, name: &str, path: Path) -> Result<usize> {
        self.places.get(name).copied().ok_or_else(|| {
            let kind = self.kind;
            let known = match self.names.as_slice() {
                [] => format!("add a [[{kind}]] named `{name}`"),
                names => format!("write one of {}, or add a [[{kind}]]", names.join(", ")),
            };
            Problem::new(&path, format!("no {kind} is named `{name}`"), known)
        })
    }
}

struct Names {
    /// Empty for one partition without a name.
    partitions: Table,
    resources: Table,
    tasks: Table,
}

fn extended(path: &Path, steps: &[Step]) -> Path {
    path.iter().chain(steps).copied().collect()
}

fn positive(time: Time, path: Path, what: &str) -> Result<Nanos> {
    if time.0 == 0 {
        return Err(Problem::new(
            &path,
            format!("{what} is 0"),
            "write the time that it really is, at least 1ns",
        ));
    }
    Ok(time.0)
}

/// Builds the releases from `period`, or from `min_interval` and `burst`.
fn stream(
    period: Option<Time>,
    min_interval: Option<Time>,
    burst: Option<u64>,
    path: &Path,
) -> Result<Option<Stream>> {
    let at = |key| extended(path, &[Step::Key(key)]);
    match (period, min_interval, burst) {
        (Some(_), Some(_), _) => Err(Problem::new(
            &at("min_interval"),
            "both `period` and `min_interval` are given",
            "keep `period` if the clock releases it, `min_interval` if anything else does",
        )),
        (_, None, Some(_)) => Err(Problem::new(
            &at("burst"),
            "`burst` has no `min_interval`",
            "add `min_interval`, the time in which there are at most that many releases",
        )),
        (_, _, Some(0)) => {
            Err(Problem::new(&at("burst"), "`burst` is 0", "write how many there may be, at least 1"))
        }
        (Some(period), None, None) => Ok(Some(Stream::sporadic(positive(period, at("period"), "`period`")?))),
        (None, Some(interval), burst) => {
            let interval = positive(interval, at("min_interval"), "`min_interval`")?;
            Ok(Some(Stream::bursts(burst.unwrap_or(1), 0, interval)))
        }
        (None, None, None) => Ok(None),
    }
}

impl Names {
    /// Returns the named partition, or the only one.
    fn partition_of(&self, name: Option<&str>, path: &Path) -> Result<usize> {
        match (name, self.partitions.names.as_slice()) {
            (None, [] | [_]) => Ok(0),
            (None, names) => Err(Problem::new(
                path,
                "there are several partitions, and none is named here",
                format!("add `partition`: one of {}", names.join(", ")),
            )),
            (Some(name), _) => self.partitions.find(name, extended(path, &[Step::Key("partition")])),
        }
    }

    fn sections(&self, sections: Vec<SectionEntry>, path: &Path) -> Result<Vec<Section>> {
        check_length(path, "sections", sections.len(), MAX_SECTIONS)?;
        let entries = sections.into_iter().enumerate().map(|(at, entry)| {
            let SectionEntry { resource, hold, times, inside } = entry;
            let under = |key| extended(path, &[Step::At(at), Step::Key(key)]);
            let resource = self.resources.find(&resource, under("resource"))?;
            let outer = inside.map(|outer| self.resources.find(&outer, under("inside")));
            let nesting = outer.transpose()?.map_or(Nesting::Outermost, Nesting::Inside);
            Ok(Section { resource, hold: hold.0, times, nesting })
        });
        let sections = entries.collect::<Result<Vec<Section>>>()?;
        for (at, section) in sections.iter().enumerate() {
            let Nesting::Inside(outer) = section.nesting else { continue };
            let path = extended(path, &[Step::At(at), Step::Key("inside")]);
            let [inner, outer] = [section.resource, outer].map(|resource| &self.resources.names[resource]);
            let is_inside = section.enclosing(&sections);
            if is_inside(section.resource) {
                let what = format!("the section of `{inner}` lies inside itself");
                return Err(Problem::new(&path, what, "name the resource that the job locks before it"));
            }
            let holds = || sections.iter().filter(|it| is_inside(it.resource));
            if holds().next().is_none() {
                let what = format!("the job has no section of `{outer}`");
                return Err(Problem::new(
                    &path,
                    what,
                    format!("add one, or take out `inside = \"{outer}\"`"),
                ));
            }
            if holds().any(|it| it.hold < section.hold) {
                let what = format!("`{inner}` is held for longer than `{outer}`, which is held around it");
                return Err(Problem::new(
                    &path,
                    what,
                    format!("raise the hold of `{outer}`, which contains it"),
                ));
            }
        }
        Ok(sections)
    }

    fn resource(&self, at: usize, entry: ResourceEntry) -> Result<Resource> {
        let ResourceEntry { name, protocol, group } = entry;
        let path = [Step::Key("resource"), Step::At(at), Step::Key("group")];
        if group.is_some() && protocol != ProtocolEntry::Msrp {
            return Err(Problem::new(
                &path,
                format!("`{name}` has a group, but its protocol is not msrp"),
                "take out `group`, or write `protocol = \"msrp\"` if tasks of several partitions lock it",
            ));
        }
        let count = self.resources.names.len();
        if group.is_some_and(|group| group >= count) {
            let most = count - 1;
            return Err(Problem::new(
                &path,
                "there are more groups than resources",
                format!("number groups from 0 to {most}"),
            ));
        }
        let protocol = match protocol {
            ProtocolEntry::Srp => Protocol::Srp,
            // By default, each resource forms a separate group.
            ProtocolEntry::Msrp => Protocol::Msrp { group: group.unwrap_or(count + at) },
            ProtocolEntry::Pcp => Protocol::Pcp,
            ProtocolEntry::None => Protocol::Unlocked,
        };
        Ok(Resource { name, protocol, ceilings: Vec::new() })
    }

    fn partition(&self, at: usize, entry: PartitionEntry) -> Result<Partition> {
        let path = vec![Step::Key("partition"), Step::At(at)];
        let under = |key| extended(&path, &[Step::Key(key)]);
        let executor = match (entry.executor, entry.cpus) {
            (ExecutorEntry::Global, Some(cpus)) if cpus > 0 => Executor::Global { cpus },
            (ExecutorEntry::Global, _) => {
                return Err(Problem::new(
                    &under("executor"),
                    "a global partition has no `cpus`",
                    "add `cpus = 4`, or as many as there are",
                ));
            }
            (_, Some(_)) => {
                return Err(Problem::new(
                    &under("cpus"),
                    "only a global partition has several CPUs",
                    "take out `cpus`, or write `executor = \"global\"`",
                ));
            }
            (ExecutorEntry::Preemptive, None) => Executor::Preemptive,
            (ExecutorEntry::Polling, None) => Executor::Polling,
        };
        let nanos = |time: Option<Time>| time.map_or(0, |time| time.0);
        Ok(Partition {
            executor,
            supply: entry.supply.map_or(Ok(Supply::Full), |supply| read_supply(supply, &under("supply")))?,
            overheads: Overheads {
                release: nanos(entry.release),
                dispatch: nanos(entry.dispatch),
                lock: nanos(entry.lock),
                preemption: nanos(entry.preemption),
            },
            cpu: entry.cpu,
            idle_sections: self.sections(entry.idle_sections, &under("idle_sections"))?,
            name: entry.name,
            ..Partition::default()
        })
    }

    fn interrupt(&self, at: usize, entry: InterruptEntry) -> Result<Interrupt> {
        let path = vec![Step::Key("interrupt"), Step::At(at)];
        let InterruptEntry { name, partition, execution, period, min_interval, burst, jitter } = entry;
        let Some(arrivals) = stream(period, min_interval, burst, &path)? else {
            let what = format!("`{name}` has no `period` or `min_interval`");
            return Err(Problem::new(&path, what, "add `period`, or `min_interval` with or without `burst`"));
        };
        let partition = self.partition_of(partition.as_deref(), &path)?;
        Ok(Interrupt { name, partition, execution: execution.0, arrivals: arrivals.with_jitter(jitter.0) })
    }

    fn task(&self, at: usize, entry: TaskEntry) -> Result<Task> {
        let path = vec![Step::Key("task"), Step::At(at)];
        let under = |key| extended(&path, &[Step::Key(key)]);
        let name = entry.name;
        if entry.level == 0 {
            return Err(Problem::new(
                &under("level"),
                format!("the level of `{name}` is 0"),
                "1 is the lowest level",
            ));
        }
        if entry.offset.is_some() && entry.period.is_none() {
            let fix = "take it out, or add `period`";
            return Err(Problem::new(
                &under("offset"),
                format!("`{name}` has an offset, but no period"),
                fix,
            ));
        }
        let arrivals = stream(entry.period, entry.min_interval, entry.burst, &path)?;
        let sections = self.sections(entry.sections, &under("sections"))?;
        for (at, section) in sections.iter().enumerate() {
            if section.hold > entry.execution.0 {
                let resource = &self.resources.names[section.resource];
                let path = extended(&path, &[Step::Key("sections"), Step::At(at), Step::Key("hold")]);
                let what = format!("`{name}` holds `{resource}` for longer than it executes");
                return Err(Problem::new(
                    &path,
                    what,
                    "`execution` contains all holds: raise it, or lower `hold`",
                ));
            }
        }
        let spawns = entry.spawns.into_iter().enumerate().map(|(at, spawn)| {
            let path = extended(&path, &[Step::Key("spawns"), Step::At(at), Step::Key("task")]);
            if spawn.most == 0 {
                return Err(Problem::new(
                    &path,
                    "`most` is 0",
                    "take the entry out, or write how many a job spawns",
                ));
            }
            let task = self.tasks.find(&spawn.task, path)?;
            Ok(Spawn { task, most: spawn.most, earliest: 0, in_section: true })
        });
        let spawns = spawns.collect::<Result<Vec<_>>>()?;
        // By default, a recurring job must end before its next release.
        let implicit =
            entry.period.or(entry.min_interval.filter(|_| entry.burst.is_none_or(|burst| burst == 1)));
        let deadline = entry
            .deadline
            .map(|time| positive(time, extended(&path, &[Step::Key("deadline")]), "`deadline`"))
            .transpose()?;
        Ok(Task {
            partition: self.partition_of(entry.partition.as_deref(), &path)?,
            level: entry.level,
            execution: entry.execution.0,
            arrivals,
            is_only_spawned: false,
            grid: None,
            most_spawns: None,
            is_periodic: entry.period.is_some(),
            jitter: entry.jitter.0,
            delay: 0,
            deadline: deadline.or(implicit.map(|time| time.0)),
            offset: entry.offset.map(|time| time.0),
            sections,
            spawns,
            suspension: entry.suspension.map(|it| Suspension { total: it.total.0, times: it.times }),
            observed: Observed::default(),
            name,
        })
    }

    fn chain(&self, at: usize, entry: ChainEntry) -> Result<Chain> {
        let path = vec![Step::Key("chain"), Step::At(at), Step::Key("tasks")];
        if entry.tasks.is_empty() {
            return Err(Problem::new(
                &path,
                format!("`{}` has no tasks", entry.name),
                "list them from cause to effect",
            ));
        }
        let tasks = entry
            .tasks
            .iter()
            .enumerate()
            .map(|(at, name)| self.tasks.find(name, extended(&path, &[Step::At(at)])));
        let tasks = tasks.collect::<Result<_>>()?;
        let at = vec![Step::Key("chain"), Step::At(at), Step::Key("deadline")];
        let deadline = entry.deadline.map(|time| positive(time, at, "`deadline`")).transpose()?;
        Ok(Chain { name: entry.name, tasks, link: entry.link, deadline })
    }
}

fn read_supply(entry: SupplyEntry, path: &Path) -> Result<Supply> {
    let at = |key| extended(path, &[Step::Key(key)]);
    match entry {
        SupplyEntry { budget: Some(budget), period: Some(period), delay: None, share: None } => {
            let budget = positive(budget, at("budget"), "`budget`")?;
            if budget > period.0 {
                return Err(Problem::new(
                    &at("budget"),
                    "the budget is longer than its period",
                    "exchange them?",
                ));
            }
            Ok(Supply::Periodic { budget, period: period.0 })
        }
        SupplyEntry { budget: None, period: None, delay, share: Some(share) } => {
            // Rounded down, so that no supply is counted that does not exist.
            let share_ppm = if share > 0.0 && share <= 1.0 { (share * 1e6) as u64 } else { 0 };
            if share_ppm == 0 {
                return Err(Problem::new(
                    &at("share"),
                    format!("a share of {share} of a CPU"),
                    "write one from 0.000001 to 1",
                ));
            }
            Ok(Supply::BoundedDelay { delay: delay.unwrap_or_default().0, share_ppm })
        }
        _ => Err(Problem::new(
            path,
            "a supply is either `budget` and `period`, or `share` and `delay`",
            "write `{ budget = \"950ms\", period = \"1s\" }` or `{ share = 0.8, delay = \"2ms\" }`",
        )),
    }
}

/// Checks that every task is released, and none only by itself.
fn check_releases(system: &System) -> Result<()> {
    let spawned: HashSet<usize> =
        system.tasks.iter().flat_map(|task| &task.spawns).map(|spawn| spawn.task).collect();
    for (at, task) in system.tasks.iter().enumerate() {
        if task.arrivals.is_none() && !spawned.contains(&at) {
            return Err(Problem::new(
                &[Step::Key("task"), Step::At(at)],
                format!("the release rate of `{}` is unknown", task.name),
                "add `min_interval` (and `burst`), which the app monitors, or name it in `spawns` of the task that spawns it",
            ));
        }
    }
    match cycle(system) {
        None => Ok(()),
        Some((at, names)) => Err(Problem::new(
            &[Step::Key("task"), Step::At(at)],
            format!("jobs of {names} spawn each other without end"),
            "give one of them a `min_interval`, which bounds its releases by any spawner",
        )),
    }
}

/// Returns a task of a cycle of tasks that are released only by each other, and the names of the
/// cycle.
pub(super) fn cycle(system: &System) -> Option<(usize, String)> {
    let mut visits = vec![Visit::None; system.tasks.len()];
    (0..system.tasks.len()).find_map(|at| {
        let cycle = cycle_from(system, at, &mut visits)?;
        let names: Vec<&str> = cycle.iter().map(|&at| system.tasks[at].name.as_str()).collect();
        Some((*cycle.first()?, names.join(" → ")))
    })
}

/// The state of a task in the search for cycles.
#[derive(Clone, Copy, PartialEq)]
enum Visit {
    None,
    OnPath,
    Done,
}

/// Returns a cycle of tasks that are released only by each other, if one is reachable.
fn cycle_from(system: &System, at: usize, visits: &mut [Visit]) -> Option<Vec<usize>> {
    let mut path: Vec<(usize, usize)> = vec![(at, 0)];
    while let Some((here, next)) = path.pop() {
        let Some(spawn) = system.tasks[here].spawns.get(next) else {
            visits[here] = Visit::Done;
            continue;
        };
        path.push((here, next + 1));
        visits[here] = Visit::OnPath;
        match visits[spawn.task] {
            _ if system.tasks[spawn.task].arrivals.is_some() => {}
            Visit::None => path.push((spawn.task, 0)),
            Visit::OnPath => {
                let from = path.iter().position(|&(on_path, _)| on_path == spawn.task)?;
                return Some(path[from..].iter().map(|step| step.0).chain([spawn.task]).collect());
            }
            Visit::Done => {}
        }
    }
    None
}

/// Checks that resources are locked if their protocol requires it.
fn check_protocols(system: &System) -> Result<()> {
    let mut partitions = vec![BTreeSet::new(); system.resources.len()];
    let of_tasks = system.tasks.iter().map(|task| (task.partition, &task.sections));
    let of_idle = system.partitions.iter().map(|partition| &partition.idle_sections).enumerate();
    for (partition, sections) in of_tasks.chain(of_idle) {
        sections.iter().for_each(|section| _ = partitions[section.resource].insert(partition));
    }
    for (at, (resource, users)) in system.resources.iter().zip(partitions).enumerate() {
        let path = [Step::Key("resource"), Step::At(at)];
        let name = |&partition: &usize| system.partitions[partition].name.as_str();
        let is_global =
            |&partition: &usize| matches!(system.partitions[partition].executor, Executor::Global { .. });
        let wrong = match resource.protocol {
            Protocol::Srp if users.len() > 1 => {
                let names: Vec<&str> = users.iter().map(name).collect();
                Some((format!("is used in {}", names.join(" and ")), "write `protocol = \"msrp\"`"))
            }
            Protocol::Srp if users.iter().any(is_global) => {
                Some(("is used on several CPUs".to_owned(), "write `protocol = \"pcp\"`"))
            }
            Protocol::Pcp if !users.iter().all(is_global) => {
                Some(("has the protocol of global partitions".to_owned(), "take out `protocol = \"pcp\"`"))
            }
            _ => None,
        };
        if let Some((what, fix)) = wrong {
            return Err(Problem::new(&path, format!("`{}` {what}", resource.name), fix));
        }
    }
    Ok(())
}

/// Checks that resources of several partitions that a job holds together share one lock; otherwise,
/// two jobs may wait for each other.
fn check_groups(system: &System) -> Result<()> {
    let group = |resource: usize| system.resources[resource].protocol.group();
    let of_tasks = system.tasks.iter().enumerate().map(|(at, task)| ("task", at, "sections", &task.sections));
    let of_idle = system.partitions.iter().enumerate();
    let of_idle = of_idle.map(|(at, it)| ("partition", at, "idle_sections", &it.idle_sections));
    for (kind, at, key, sections) in of_tasks.chain(of_idle) {
        for (place, inner) in sections.iter().enumerate() {
            let Some(own) = group(inner.resource) else { continue };
            let is_inside = inner.enclosing(sections);
            let differs = |outer: &&Section| {
                group(outer.resource).is_some_and(|of| of != own) && is_inside(outer.resource)
            };
            if let Some(outer) = sections.iter().find(differs) {
                let path = [Step::Key(kind), Step::At(at), Step::Key(key), Step::At(place)];
                let path = [&path[..], &[Step::Key("inside")]].concat();
                let [inner, outer] = [inner, outer].map(|it| &system.resources[it.resource].name);
                let what = format!("`{inner}` is locked inside `{outer}`, and they are in different groups");
                return Err(Problem::new(&path, what, "give both the same `group`"));
            }
        }
    }
    Ok(())
}
