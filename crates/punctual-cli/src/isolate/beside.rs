//! Disturbances of a command on its CPUs, recorded by the kernel's tracer, in comparison with other
//! CPUs.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use punctual_isolate::facts::Statistics;
use punctual_isolate::isolate::{Account, Plan, Row};
use punctual_isolate::tree::Tree;
use punctual_report::format::{format_count, format_counted, format_nanos};
use punctual_report::table::{Cell, Column, Table};
use punctual_trace::event::{Event, Tid};
use punctual_trace::names::Names;
use punctual_trace::noise::Noise;
use punctual_trace::record::{Config, Group, Live, LiveError, drop_real_time_policy};

use crate::output::message;
use crate::parse::numbers;
use crate::trace::names::{NameWatch, NewNames};

/// Maximum number of kinds that are shown.
const SHOWN: usize = 12;
/// Interval at which events are read from the kernel's buffers.
const EVERY: Duration = Duration::from_millis(20);
/// Maximum number of ancestors of a process below this one.
const GENERATIONS: u32 = 64;
/// Maximum number of remembered threads.
const THREADS: usize = 65_536;

/// Recording of disturbances while a command runs on the CPUs of a plan.
pub(crate) struct Beside {
    tree: Tree,
    before: Account,
    stolen: Option<u64>,
    begun: Instant,
    /// `None` if not requested, or not possible.
    recorder: Option<Recorder>,
}

struct Recorder {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Result<Recorded, LiveError>>,
}

/// Results of a recorder.
struct Recorded {
    noise: Noise,
    names: Names,
}

impl Beside {
    /// Begins to count, and with `record` also to record, which costs each interruption some 100
    /// ns. Stores the reason if it cannot record.
    pub(crate) fn begin(plan: &Plan, record: bool) -> Self {
        let recorder = record.then(|| Recorder::start(plan)).and_then(|started| {
            started
                .map_err(|why| message!("disturbances of the command are counted, but not recorded: {why}"))
                .ok()
        });
        let tree = Tree::system();
        Self {
            before: Account::read(&tree),
            stolen: stolen(&tree, plan),
            begun: Instant::now(),
            tree,
            recorder,
        }
    }

    /// Ends with the command, and returns a description of the disturbances.
    pub(crate) fn end(self, plan: &Plan) -> String {
        let took = self.begun.elapsed();
        let after = Account::read(&self.tree);
        let now = stolen(&self.tree, plan);
        let mut out = counted(plan, &after.since(&self.before, &plan.cpus, &plan.others));
        match self.recorder.map(Recorder::end) {
            Some(Ok(recorded)) => out += &format!("\n\n{}", in_time(plan, &recorded, took)),
            Some(Err(why)) => out += &format!("\nthe recording failed: {why}"),
            None => {}
        }
        if let (Some(then), Some(now)) = (self.stolen, now)
            && now > then
        {
            let ns = (now - then) as f64 * 1e7;
            out += &format!("\nthe hypervisor had {} for {} of that", plan.cpus.named(), format_nanos(ns));
        }
        out
    }
}

impl Recorder {
    fn start(plan: &Plan) -> Result<Self, String> {
        let config = Config {
            groups: vec![Group::Sched, Group::Irq, Group::Vectors, Group::Softirq],
            buffer_kib: 4 << 10,
            cpus: numbers(&plan.cpus),
            housekeeping: numbers(&plan.others),
            ..Config::default()
        };
        let group = plan.group.clone();
        let over = Arc::new(AtomicBool::new(false));
        let (ready, started) = mpsc::channel();
        let is_over = Arc::clone(&over);
        let run = move || {
            drop_real_time_policy(&config.housekeeping);
            let live = Live::start(&config)?;
            // The waiting thread may have ended.
            let _ = ready.send(());
            follow(live, &config.cpus, Owner { group, known: HashMap::new() }, &is_over)
        };
        let thread = std::thread::Builder::new().name("punctual-record".into()).spawn(run);
        let thread = thread.map_err(|error| format!("no thread: {error}"))?;
        match started.recv() {
            Ok(()) => Ok(Self { over, thread }),
            Err(_) => match thread.join() {
                Ok(Err(error)) => Err(error.to_string()),
                _ => Err("the recorder ended".into()),
            },
        }
    }

    fn end(self) -> Result<Recorded, String> {
        self.over.store(true, Ordering::Relaxed);
        match self.thread.join() {
            Ok(recorded) => recorded.map_err(|error| error.to_string()),
            Err(_) => Err("its thread has panicked".into()),
        }
    }
}

fn follow(mut live: Live, cpus: &[u32], mut owner: Owner, over: &AtomicBool) -> Result<Recorded, LiveError> {
    let mut noise = Noise::new(cpus.iter().filter_map(|&cpu| u16::try_from(cpu).ok()));
    let (mut names, mut watch, mut events) = (Names::new(), NameWatch::default(), Vec::new());
    live.threads().iter().for_each(|(thread, name)| names.thread(thread, &name.text()));
    let mut take = |events: &mut Vec<Event>, noise: &mut Noise, names: &mut Names| {
        for event in events.drain(..) {
            names.see(&event);
            noise.event(&event, |thread| owner.has(thread));
        }
    };
    while !over.load(Ordering::Relaxed) {
        std::thread::sleep(EVERY);
        live.take(&mut events)?;
        put(&mut names, watch.news(&live));
        take(&mut events, &mut noise, &mut names);
    }
    live.stop(&mut events)?;
    take(&mut events, &mut noise, &mut names);
    Ok(Recorded { noise, names })
}

fn put(names: &mut Names, news: Option<NewNames>) {
    let Some(news) = news else { return };
    news.irqs.iter().for_each(|(irq, name)| names.irq(*irq, name));
    news.vectors.iter().for_each(|(vector, name)| names.vector(*vector, name));
}

/// Identifies the threads of the command.
struct Owner {
    /// The control group of the command.
    group: Option<String>,
    known: HashMap<Tid, bool>,
}

impl Owner {
    fn has(&mut self, thread: Tid) -> bool {
        if self.known.len() >= THREADS {
            self.known.clear();
        }
        let group = self.group.as_deref();
        *self.known.entry(thread).or_insert_with(|| is_own(thread, group))
    }
}

/// Returns whether a thread is in the group of the command; without a group, whether this process
/// has started it. An ended thread counts as one of the command: kernel threads bound to a CPU do
/// not end, and others cannot run there.
fn is_own(thread: Tid, group: Option<&str>) -> bool {
    let read = |file: &str| fs::read_to_string(format!("/proc/{thread}/{file}"));
    match group.and_then(|group| group.rsplit('/').next()) {
        Some(group) => read("cgroup").map_or(true, |text| {
            text.lines().any(|line| {
                line.rsplit(':').next().is_some_and(|path| path.split('/').any(|part| part == group))
            })
        }),
        None => {
            let mut process = thread;
            for _ in 0..GENERATIONS {
                let Ok(status) = fs::read_to_string(format!("/proc/{process}/status")) else {
                    return process == thread;
                };
                let field = |name: &str| {
                    status.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<Tid>().ok())
                };
                if field("Tgid:") == Some(std::process::id()) {
                    return true;
                }
                match field("PPid:") {
                    Some(parent) if parent > 0 => process = parent,
                    _ => return false,
                }
            }
            false
        }
    }
}

/// Returns the time for which the hypervisor has used the CPUs, in ticks of the kernel's
/// statistics, of 10 ms each.
fn stolen(tree: &Tree, plan: &Plan) -> Option<u64> {
    let statistics = Statistics::read(tree);
    plan.cpus.iter().map(|cpu| statistics.cpu(cpu)?.stolen).sum()
}

/// Describes the numbers of disturbances, in comparison with other CPUs.
fn counted(plan: &Plan, rows: &[Row]) -> String {
    let taken = format!("on {}", plan.cpus.named());
    let mut table = Table::new([Column::left("came"), Column::right(&taken), Column::right("on another")]);
    for row in rows.iter().take(SHOWN) {
        let count = |count| Cell::new(format_count(count));
        table.row([Cell::new(&row.name), count(row.taken), count(row.others)]);
    }
    let kinds = |count: fn(&Row) -> u64| {
        format_counted(rows.iter().filter(|row| count(row) > 0).count() as u64, "kind")
    };
    format!(
        "{table}{}: {} of interruptions; other CPUs: {}",
        plan.cpus.named(),
        kinds(|row| row.taken),
        kinds(|row| row.others)
    )
}

/// Describes the causes that took the CPUs from the command, and their times.
fn in_time(plan: &Plan, recorded: &Recorded, took: Duration) -> String {
    let named = plan.cpus.named();
    let causes = recorded.noise.causes();
    let head = format!("took {named}");
    let mut table = Table::new([
        Column::left(&head),
        Column::right("times"),
        Column::right("in all"),
        Column::right("longest"),
    ]);
    for (actor, share) in causes.iter().take(SHOWN) {
        table.row([
            Cell::new(recorded.names.of(*actor)),
            Cell::new(format_count(share.count)),
            Cell::new(format_nanos(share.total as f64)),
            Cell::new(format_nanos(share.longest as f64)),
        ]);
    }
    let total: u64 = causes.iter().map(|(_, share)| share.total).sum();
    let part = 100.0 * total as f64 / (took.as_nanos() as f64 * plan.cpus.len().max(1) as f64).max(1.0);
    let mut out = format!(
        "{table}{named}: {} in {}, {part:.4} %, by {}",
        format_nanos(total as f64),
        format_nanos(took.as_nanos() as f64),
        format_counted(causes.len() as u64, "cause")
    );
    if recorded.noise.lost() > 0 {
        out += &format!("; {} are missing", format_counted(recorded.noise.lost(), "event"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selects_threads_by_group_or_ancestor() {
        let this = std::process::id();
        assert!(is_own(this, None));
        assert!(!is_own(1, None), "the first process is nobody's");
        // This process is in some other group.
        assert!(!is_own(this, Some("/sys/fs/cgroup/punctual-no-such-group")));
        assert!(is_own(u32::MAX, Some("/x")) && is_own(u32::MAX, None), "it has ended");
        // A kernel thread is in no group of ours.
        assert!(!is_own(2, Some("/sys/fs/cgroup/punctual-no-such-group")));
    }
}
