//! The preparation of a recording.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use punctual_files::Directory;

use super::drain::{Drain, Pipe};
use super::error::RecordError;
use super::events::{self, Absent, Group};
use super::filter::{Filter, kernel_name};
use super::reservations::{self, Reservations};
use super::save::{Saver, formats};
use super::schedule::{self, Programs, store::Store};
use super::tracefs::{self, Buffers, Instance};
use super::{Config, PREFIXES, Recording};
use crate::event::Tid;
use crate::format::Order;
use crate::format::dat::clock_of;
use crate::format::fields::PageLayout;
use crate::read::clock::counted;
use crate::recorded::{Chosen, Recorded};

/// The analysis requires these events.
const NEEDED: [&str; 2] = ["sched_switch", "sched_waking"];

/// Prepared instances, with tracing off.
pub(super) struct Ready {
    pub(super) tracefs: PathBuf,
    pub(super) instances: Vec<Instance>,
    /// The groups of events whose formats are needed, as tracefs names them.
    pub(super) systems: Vec<String>,
    /// True if the events include system calls other than those on futexes.
    pub(super) calls: bool,
    /// True if functions of the kernel are traced.
    pub(super) functions: bool,
    pub(super) cpus: Vec<u32>,
    pub(super) page: PageLayout,
    /// The programs for the scheduler's entries and returns, if requested and possible.
    pub(super) schedule: Option<Programs>,
    pub(super) absent: Vec<Absent>,
    /// The enabled events: see [`Recorded::declared`].
    pub(super) declared: String,
    pub(super) removed: Vec<String>,
}

/// Creates the instances, unless `buffers` exist, and enables the events in them.
pub(super) fn ready(config: &Config, buffers: Option<Buffers>) -> Result<Ready, RecordError> {
    config.filter.check()?;
    let threads = config.filter.threads()?;
    let Buffers { tracefs, main, removed } = buffers.map_or_else(Buffers::new, Ok)?;
    let mut absent = Vec::new();
    // First, because the kernel reports nonexistent CPUs only as a too large value.
    let cpus = recorded_cpus(&main, config)?;
    prepare(&main, config)?;
    let mut systems = vec!["ftrace".to_owned()];
    let mut functions = false;
    let mut followed = Followed(None);
    // The directories of the enabled events.
    let mut on = Vec::new();
    let (follows, narrow) = (follows(config), config.narrow && !mixes(config));
    if config.narrow && !narrow {
        let why = "threads are followed by the process that started them, or selected by name \
                   and priority, but not both; all are recorded";
        absent.push(Absent { group: Group::Sched, event: None, why: Some(why.to_owned()) });
    }
    for &group in &config.groups {
        match group {
            Group::FunctionGraph => {
                functions = events::function_graph(&main);
                if functions {
                    let (system, names) = group.events();
                    on.extend(names.iter().map(|name| format!("events/{system}/{name}")));
                } else {
                    absent.push(Absent { group, event: None, why: None });
                }
                continue;
            }
            // Loaded once the CPUs are known.
            Group::Schedule => continue,
            _ => {}
        }
        let mut present = events::present(&main, group, &mut absent);
        if group == Group::Sleep && config.filter.is_empty() {
            present.retain(|event| !events::is_frequent(event));
        }
        if group == Group::Sched {
            check_needed(&present)?;
        }
        for event in &present {
            if follows(group, event) {
                events::enable(followed.get(&tracefs, config, &threads)?, event)?;
            } else {
                let narrow = narrow && !config.filter.is_by_process();
                enable(&main, group, event, narrow, &config.filter, &threads)?;
            }
        }
        on.extend(present);
        systems.push(group.events().0.to_owned());
    }
    for pattern in &config.tracepoints {
        for event in events::matching(&main, pattern)? {
            if on.contains(&event) {
                continue;
            }
            let system = event.split('/').nth(1).unwrap_or_default();
            // Calls are frequent: only those of the traced threads are recorded, as for futexes.
            let group = if system == "syscalls" { Some(Group::Futex) } else { None };
            match group {
                Some(group) if follows(group, &event) => {
                    events::enable(followed.get(&tracefs, config, &threads)?, &event)?
                }
                Some(group) => enable(&main, group, &event, false, &config.filter, &threads)?,
                None => events::enable(&main, &event)?,
            }
            systems.push(system.to_owned());
            on.push(event);
        }
    }
    systems.sort_unstable();
    systems.dedup();
    let calls = on.iter().any(|event| {
        event.starts_with("events/syscalls/")
            && !event.contains("futex")
            && !events::SLEEP.contains(&name(event))
    });
    let page = page_layout(&tracefs)?;
    let mut schedule = None;
    if config.groups.contains(&Group::Schedule) && config.newest {
        let why = "its buffer has no room for new events when it is full".to_owned();
        absent.push(Absent { group: Group::Schedule, event: None, why: Some(why) });
    } else if config.groups.contains(&Group::Schedule) {
        match schedule::load(config, &threads, &cpus) {
            Ok(programs) => {
                schedule = Some(programs);
                on.extend(
                    ["events/punctual/schedule_enter", "events/punctual/schedule_exit"].map(str::to_owned),
                );
            }
            Err(why) => absent.push(Absent { group: Group::Schedule, event: None, why: Some(why) }),
        }
    }
    let instances = [main].into_iter().chain(followed.0).collect();
    let on: Vec<_> = on.iter().map(|path| path.trim_start_matches("events/").replace('/', ":")).collect();
    // Threads started by threads that are selected by name are not followed; their calls show them.
    let traced = if follows(Group::Futex, "") { &threads[..] } else { &[] };
    let calls_of = (!config.filter.is_empty()).then_some(traced);
    let mut declared = Recorded::declaration(on.iter().map(String::as_str), calls_of);
    if narrow && !config.filter.is_empty() && config.groups.contains(&Group::Sched) {
        declared += &chosen(&config.filter, &threads).text();
    }
    Ok(Ready {
        tracefs,
        instances,
        systems,
        calls,
        functions,
        cpus,
        page,
        schedule,
        absent,
        declared,
        removed,
    })
}

pub(super) fn start(
    config: &Config,
    buffers: Option<Buffers>,
    directory: &Path,
) -> Result<Recording, RecordError> {
    let Ready {
        tracefs,
        instances,
        systems,
        calls,
        functions,
        cpus,
        page,
        schedule,
        absent,
        declared,
        removed,
    } = ready(config, buffers)?;
    let created = Directory::create(directory);
    let directory = created.map_err(|error| RecordError::output(directory, directory, error))?;
    let saver = Saver { tracefs: &tracefs, directory: &directory };
    saver.formats(&systems, calls)?;
    saver.write("recorded", declared.as_bytes())?;
    let shows_addresses = saver.rest(&instances[0].read("trace_clock")?, functions)?;
    let hidden = (!shows_addresses).then(|| formats(&tracefs, &systems, calls));
    let mut names = String::new();
    saver.names(&mut names)?;
    let (mut pipes, mut files) = (Vec::new(), Vec::new());
    for (instance, prefix) in instances.iter().zip(PREFIXES) {
        for &cpu in &cpus {
            let name = format!("{prefix}per_cpu/cpu{cpu}/trace_pipe_raw");
            pipes.push(Pipe::open(instance.path(), cpu, &saver, &name, page.size)?);
            files.push(name);
        }
    }
    let store = schedule.map(|programs| Store::create(programs, &saver, &systems, page)).transpose()?;
    let here = housekeeping(config);
    let every = (!config.newest).then_some(config.every);
    let drain = Drain::start(pipes, directory.path(), &here, every)?;
    let directory = Arc::new(directory);
    let sample = reservations::keep(Reservations::new(&config.filter.processes), Arc::clone(&directory));
    let mut recording = Recording {
        schedule: None,
        reservations: None,
        drain,
        instances,
        tracefs,
        directory,
        cpus,
        names,
        absent,
        removed,
        files: (files, page),
        newest: config.newest,
        hidden,
    };
    for instance in &recording.instances {
        instance.set_on(true)?;
    }
    recording.instances[0].take_marks();
    recording.reservations = Some(Drain::repeat(&here, reservations::EVERY, sample)?);
    // After the switches begin and before they end: an entry or return without its switches would
    // contradict the known state.
    if let Some(mut store) = store {
        store.attach()?;
        let counts = store.counts();
        let drain = Drain::repeat(&here, config.every, move |last| store.step(last))?;
        recording.schedule = Some((drain, counts));
    }
    Ok(recording)
}

/// Returns the predicate for events in a separate buffer, in which the kernel follows the selected
/// threads and all threads that they start. The kernel does this for all events of a buffer, but
/// interrupt handlers are needed regardless of the displaced thread. Selection by name works in any
/// buffer.
///
/// In a narrow recording, these events are the switches and wake-ups, which the kernel then records
/// if either side is selected. For the other scheduler events it would check the thread that runs
/// at that time, not the thread that the event refers to.
fn follows(config: &Config) -> impl Fn(Group, &str) -> bool {
    let calls = !config.filter.is_empty() && config.filter.names.is_empty();
    let narrow = config.narrow && config.filter.is_by_process();
    move |group, event| match group {
        Group::Futex | Group::Sleep => calls,
        Group::Sched => {
            narrow
                && ["sched_switch", "sched_waking", "sched_wakeup", "sched_wakeup_new"].contains(&name(event))
        }
        _ => false,
    }
}

/// Returns the threads whose switches and wake-ups a narrow recording contains completely.
fn chosen(filter: &Filter, threads: &[Tid]) -> Chosen {
    let chosen = Chosen::new(threads, filter.is_by_process());
    let chosen = filter.names.iter().fold(chosen, |chosen, name| chosen.or_named(kernel_name(name)));
    match filter.kernel_priorities() {
        Some((first, last)) => chosen.or_at(first, last),
        None => chosen,
    }
}

/// Returns whether threads are selected by process and by other conditions as well. The kernel can
/// follow threads in a buffer and compare fields of events, but cannot combine the two with "or".
fn mixes(config: &Config) -> bool {
    !config.filter.processes.is_empty() && !config.filter.is_by_process()
}

/// Returns the name of an event from its directory.
fn name(event: &str) -> &str {
    event.rsplit('/').next().unwrap_or_default()
}

fn check_needed(present: &[String]) -> Result<(), RecordError> {
    let missing = NEEDED.iter().filter(|needed| !present.iter().any(|event| name(event) == **needed));
    let events: Vec<_> = missing.map(|name| format!("sched:{name}")).collect();
    if events.is_empty() { Ok(()) } else { Err(RecordError::MissingEvents { events }) }
}

fn prepare(instance: &Instance, config: &Config) -> Result<(), RecordError> {
    instance.set_on(false)?;
    let clocks = instance.read("trace_clock")?;
    let available: Vec<_> = clocks.split_whitespace().map(|clock| clock.trim_matches(['[', ']'])).collect();
    let usable: Vec<_> = available.iter().copied().filter(|clock| counted(clock).is_none()).collect();
    if !usable.contains(&config.clock.as_str()) {
        let (clock, usable) = (config.clock.clone(), usable.join(", "));
        return Err(match counted(&clock).filter(|_| available.contains(&clock.as_str())) {
            Some(counted) => RecordError::NoTime { clock, counted, available: usable },
            None => RecordError::Clock { clock, available: usable },
        });
    }
    if clock_of(&clocks) != config.clock {
        instance.write("trace_clock", &config.clock)?;
    }
    instance.write("buffer_size_kb", &config.buffer_kib.max(64).to_string())?;
    // Only overwritten events are marked in the pages; dropped ones would be missing without any
    // mark.
    instance.write("options/overwrite", "1")?;
    instance.prefer("record-cmd", "1");
    if !config.cpus.is_empty() {
        instance.write("tracing_cpumask", &mask(&config.cpus))?;
    }
    Ok(())
}

/// The buffer in which the kernel follows threads, once there is an event for it.
struct Followed(Option<Instance>);

impl Followed {
    fn get(&mut self, tracefs: &Path, config: &Config, threads: &[Tid]) -> Result<&Instance, RecordError> {
        let instance = match self.0.take() {
            Some(instance) => instance,
            None => {
                let instance = Instance::create(tracefs)?;
                prepare(&instance, config)?;
                follow(&instance, threads)?;
                instance
            }
        };
        Ok(self.0.insert(instance))
    }
}

/// Selects the events of these threads, and of all that they start.
fn follow(instance: &Instance, threads: &[Tid]) -> Result<(), RecordError> {
    instance.prefer("event-fork", "1");
    let list = threads.iter().map(|thread| format!("{thread} ")).collect::<String>();
    // An empty list would mean all threads; the kernel gives no thread this number.
    instance.write("set_event_pid", if list.is_empty() { "4194304" } else { &list })
}

/// Enables an event, only for the selected threads if requested and supported by the kernel.
fn enable(
    instance: &Instance,
    group: Group,
    event: &str,
    narrow: bool,
    filter: &Filter,
    threads: &[Tid],
) -> Result<(), RecordError> {
    let (pid, comm, prio): (&[_], &[_], &[_]) = match (group, name(event)) {
        (Group::Sched, _) if !narrow => (&[], &[], &[]),
        (Group::Sched, "sched_switch") => {
            (&["prev_pid", "next_pid"], &["prev_comm", "next_comm"], &["prev_prio", "next_prio"])
        }
        (Group::Sched, "sched_pi_setprio") => (&["pid"], &["comm"], &["oldprio", "newprio"]),
        (Group::Sched, _) => (&["pid"], &["comm"], &["prio"]),
        (Group::Futex | Group::Sleep, _) => (&["common_pid"], &["COMM"], &[]),
        _ => (&[], &[], &[]),
    };
    let condition = filter.condition(threads, pid, comm, prio);
    if !condition.is_empty() {
        instance.write(&format!("{event}/filter"), &condition).map_err(|error| match error {
            RecordError::Kernel { error, .. } => RecordError::Filter {
                filter: condition.clone(),
                why: format!("the kernel answers: {error}; name fewer threads"),
            },
            other => other,
        })?;
    }
    events::enable(instance, event)
}

fn page_layout(tracefs: &Path) -> Result<PageLayout, RecordError> {
    let path = tracefs.join("events/header_page");
    let text = tracefs::content(&path).map_err(|error| RecordError::kernel(&path, "reading", error))?;
    PageLayout::parse(&text, Order::NATIVE).map_err(|error| {
        let error = io::Error::new(io::ErrorKind::InvalidData, error.to_string());
        RecordError::kernel(&path, "reading", error)
    })
}

/// Returns the recorded CPUs that have buffers.
fn recorded_cpus(instance: &Instance, config: &Config) -> Result<Vec<u32>, RecordError> {
    let path = instance.path().join("per_cpu");
    let entries = fs::read_dir(&path).map_err(|error| RecordError::kernel(&path, "reading", error))?;
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.strip_prefix("cpu")?.parse().ok();
    let mut cpus: Vec<u32> = entries.flatten().filter_map(number).collect();
    cpus.sort_unstable();
    if let Some(&cpu) = config.cpus.iter().find(|cpu| !cpus.contains(cpu)) {
        return Err(RecordError::Cpu { cpu });
    }
    cpus.retain(|cpu| config.cpus.is_empty() || config.cpus.contains(cpu));
    Ok(cpus)
}

/// Returns the CPUs on which the recorder does not disturb the recorded ones; empty if these are
/// all CPUs.
pub(super) fn housekeeping(config: &Config) -> Vec<u32> {
    if !config.housekeeping.is_empty() || config.cpus.is_empty() {
        return config.housekeeping.clone();
    }
    let last = std::thread::available_parallelism().map_or(1, usize::from) as u32;
    let last = last.max(config.cpus.iter().max().map_or(0, |cpu| cpu + 1));
    (0..last).filter(|cpu| !config.cpus.contains(cpu)).collect()
}

/// Returns CPUs in the kernel's format for sets: 32 per word, the highest first.
fn mask(cpus: &[u32]) -> String {
    let words = cpus.iter().max().map_or(0, |cpu| cpu / 32) + 1;
    let word = |word: u32| {
        cpus.iter().filter(|&cpu| cpu / 32 == word).fold(0u32, |bits, cpu| bits | 1 << (cpu % 32))
    };
    (0..words).rev().map(|index| format!("{:08x}", word(index))).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_cpu_masks() {
        assert_eq!(mask(&[0]), "00000001");
        assert_eq!(mask(&[1, 3, 33]), "00000002,0000000a");
    }

    #[test]
    fn runs_recorder_on_untraced_cpus() {
        let config = |cpus: &[u32], housekeeping: &[u32]| Config {
            cpus: cpus.to_vec(),
            housekeeping: housekeeping.to_vec(),
            ..Config::default()
        };
        assert!(housekeeping(&config(&[], &[])).is_empty());
        assert_eq!(housekeeping(&config(&[0, 1, 200], &[7])), [7]);
        assert!(!housekeeping(&config(&[1], &[])).contains(&1));
    }
}
