//! The effect of another CPU on a short loop, through caches, memory and disks: Wassen and Lankes'
//! cache victims.
//!
//! The loop reads one line of a small table, between two readings of the clock. Meanwhile another
//! CPU sweeps a buffer: with the size of each cache of the measured CPU and larger than the last,
//! line by line or page by page, reading or writing. If the two share an inclusive cache that
//! evicts one of the loop's lines, the loop must fetch the line from memory.
//!
//! Another CPU also writes to a disk, whose transfers and interrupts share memory and buses with
//! the loop. On a machine with NUMA nodes, a CPU of each node sweeps and writes in turn:
//! partitioning by nodes helps if only the CPUs of the loop's own node delay it.

mod other_cpu;

use std::hint::black_box;

use punctual_isolate::facts::Topology;

use self::other_cpu::{Access, Sweep, sweeping, writing};
use crate::clock;
use crate::machine::{read, topology};
use crate::model::{Quantity, Row};
use crate::options::{Plan, SuiteName};
use crate::recorder::Recorder;
use crate::rt;
use crate::session::{Session, Step};
use crate::stats::Statistics;
use crate::suites::Registration;

/// The size of the loop's table: half of the smallest existing first-level cache.
const TABLE: usize = 16 * 1024;
/// The size of a cache line.
const LINE: usize = 64;
const PAGE: usize = 4096;
/// The number of samples taken for each requested one, since the effect is rare.
const MORE: usize = 32;
/// The factor by which the largest buffer exceeds the last cache, and its maximum size.
const EXCEEDING_FACTOR: usize = 4;
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// Name of the suite.
pub const NAME: SuiteName = SuiteName("interference");

pub(super) const SUITE: Registration = Registration {
    name: NAME,
    title: "The effect of another CPU on a loop, through caches, memory and disks",
    summary: "the effect of another CPU on a loop, through caches, memory and disks",
    is_usual: true,
    has_references: false,
    steps,
};

/// Another CPU and its activity.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Other {
    cpu: usize,
    /// Its NUMA node, if the machine has several.
    node: Option<Node>,
    activity: Activity,
}

/// A NUMA node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Node {
    number: u32,
    /// `true` if the measured CPU is on it.
    is_own: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Activity {
    /// Sweeps a buffer with the size of a cache, or larger than the last one.
    Sweeps { sweep: Sweep, of: String },
    /// Writes a file and waits until it is on the disk, repeatedly.
    Writes,
}

impl Sweep {
    /// Returns the stride in words.
    fn by(self) -> &'static str {
        if self.stride == LINE { "line" } else { "page" }
    }
}

impl Other {
    /// Returns the activity in words.
    fn text(&self) -> String {
        let activity = match &self.activity {
            Activity::Sweeps { sweep, of } => {
                let by = sweep.by();
                format!("{} a buffer of {of} by the {by}", sweep.access.text())
            }
            Activity::Writes => "writes to a disk".into(),
        };
        match self.node {
            Some(Node { number, is_own: true }) => format!("{activity}, on its node {number}"),
            Some(Node { number, .. }) => format!("{activity}, on node {number}"),
            None => activity,
        }
    }

    /// Returns the part of the row's ID that names the activity.
    fn slug(&self) -> String {
        let activity = match &self.activity {
            Activity::Sweeps { sweep, of } => {
                let by = sweep.by();
                format!("{}-{by}-{}", of.replace(" × ", "x"), sweep.access.text())
            }
            Activity::Writes => "disk-writes".into(),
        };
        match self.node {
            Some(node) => format!("{activity}-node{}", node.number),
            None => activity,
        }
    }

    /// Returns the name of the step.
    fn step(&self) -> String {
        let activity = match &self.activity {
            Activity::Sweeps { sweep, .. } => {
                format!("{} {} KiB by {} B", sweep.access.text(), sweep.bytes / 1024, sweep.stride)
            }
            Activity::Writes => "writes to a disk".into(),
        };
        let node = self.node.map_or(String::new(), |node| format!(" of node {}", node.number));
        format!("interference, the other CPU{node} {activity}")
    }
}

fn steps(plan: &Plan) -> Vec<Step> {
    let mut steps = vec![Step::new("interference, idle", |session| turn(session, None))];
    let Some(other_cpu) = plan.other_cpu else {
        let row = row("nothing can run on another CPU", "other");
        steps.push(Step::new("interference, no other CPU", |session| {
            session.add_unmeasured(row, "no other CPU")
        }));
        return steps;
    };
    for other in others(&topology(), plan.cpu, other_cpu, &rt::allowed_cpus()) {
        steps.push(Step::new(other.step(), move |session| turn(session, Some(&other))));
    }
    steps
}

/// Returns the activities of `other_cpu`, and of one of the `allowed` CPUs on each other NUMA node:
/// on these only such that reach memory, because nodes share no cache.
fn others(topology: &Topology, cpu: usize, other_cpu: usize, allowed: &[usize]) -> Vec<Other> {
    let node_of = |cpu| topology.cpu(cpu).and_then(|cpu| cpu.node);
    let has_nodes = topology.cpus.iter().any(|other| other.node != node_of(cpu));
    // One CPU for each node, that of `other_cpu` first.
    let mut cpus = vec![other_cpu];
    for &next in allowed.iter().rev().filter(|&&next| has_nodes && next != cpu) {
        if cpus.iter().all(|&taken| node_of(taken) != node_of(next)) {
            cpus.push(next);
        }
    }
    let mut sizes: Vec<(String, usize)> = topology
        .cpu(cpu)
        .into_iter()
        .flat_map(|cpu| &cpu.caches)
        .map(|cache| (format!("L{}", cache.level), cache.size as usize))
        .collect();
    if let Some((last, bytes)) = sizes.last().cloned() {
        sizes.push((format!("{EXCEEDING_FACTOR} × {last}"), (bytes * EXCEEDING_FACTOR).min(MAX_BYTES)));
    }
    let mut others = Vec::new();
    for other in cpus {
        let node = node_of(other).filter(|_| has_nodes);
        let node = node.map(|number| Node { number, is_own: node_of(cpu) == Some(number) });
        let reached = if other == other_cpu { &sizes[..] } else { &sizes[sizes.len().saturating_sub(1)..] };
        for (of, bytes) in reached {
            for stride in [LINE, PAGE] {
                for access in [Access::Reads, Access::Writes] {
                    let sweep = Sweep { bytes: *bytes, stride, access };
                    others.push(Other {
                        cpu: other,
                        node,
                        activity: Activity::Sweeps { sweep, of: of.clone() },
                    });
                }
            }
        }
        others.push(Other { cpu: other, node, activity: Activity::Writes });
    }
    others
}

fn row(activity: &str, slug: &str) -> Row {
    Row {
        id: format!("{NAME}/loop/{slug}"),
        operation: "One line of a table of 16 KiB".into(),
        subject: format!("the other CPU: {activity}"),
        operations_per_sample: 1,
        ..Row::default()
    }
}

/// Measures the loop during the activity of another CPU, or without one.
fn turn(session: &mut Session<'_>, other: Option<&Other>) {
    let (cpu, clock) = (session.plan.cpu, session.clock);
    let mut row = other.map_or_else(|| row("nothing", "nothing"), |other| row(&other.text(), &other.slug()));
    let samples = session.samples() * MORE;
    let measured = || rt::on_thread(cpu, rt::PRIORITY, |lack| (sample(samples), lack.clone()));
    let result = match other.map(|other| (other.cpu, &other.activity)) {
        None => Ok(measured()),
        Some((other, Activity::Sweeps { sweep, .. })) => sweeping(*sweep, other, measured),
        Some((other, Activity::Writes)) => writing(other, measured),
    };
    let (recorder, lack) = match result {
        Ok(measured) => measured,
        Err(why) => return session.add_unmeasured(row, why),
    };
    let mut statistics = Statistics::new();
    recorder.values().for_each(|ticks| statistics.record_ps(clock.ps(ticks)));
    let mut ticks: Vec<u64> = recorder.values().collect();
    ticks.sort_unstable();
    row.quantities = cycles(&ticks, clock.name());
    session.note(
        "Published (Wassen and Lankes, an Intel processor with an inclusive cache, a short loop on an isolated CPU): 44 to 64 \
         cycles while the other CPU uses a small buffer, 44 to 1340 while it uses a large one, 47 on average in both.",
    );
    if let Some(other) = session.plan.other_cpu
        && topology().cpu(cpu).is_some_and(|cpu| cpu.siblings.has(other))
    {
        session.note(format!("CPU {other} is a hardware thread of the same core: the two share all caches."));
    }
    if read("/sys/fs/resctrl/schemata").is_empty() {
        session.note(
            "Cache allocation (CAT, resctrl) is not available, because of the processor, the hypervisor or the kernel.",
        );
    } else {
        session.note(
            "resctrl is mounted: a group with separate cache ways (CAT) would protect the loop's lines from the other CPU. \
             The figures are without it.",
        );
    }
    session.add_figures(row, statistics.distribution(), &lack);
}

/// Measures reading one line after another, in random order, which defeats prefetchers.
fn sample(samples: usize) -> Recorder {
    let recorder = Recorder::new(samples);
    let mut table = vec![0_u64; TABLE / size_of::<u64>()];
    let lines = TABLE / LINE;
    let words = LINE / size_of::<u64>();
    // One cycle through all lines: the step is coprime to their number.
    (0..lines).for_each(|line| table[line * words] = ((line + 97) % lines * words) as u64);
    let mut at = 0;
    loop {
        let from = clock::now();
        at = black_box(table[at]) as usize;
        let to = clock::now();
        if !recorder.push(black_box(to - from)) {
            return recorder;
        }
    }
}

/// Returns the figures in cycles of the time-stamp counter, the unit of published figures; empty
/// with another clock.
fn cycles(sorted: &[u64], clock: &str) -> Vec<Quantity> {
    if clock != "TSC" {
        return Vec::new();
    }
    let Some(last) = sorted.len().checked_sub(1) else { return Vec::new() };
    let quantity = |name: &str, index: usize| Quantity {
        name: name.into(),
        value: sorted[index] as f64,
        unit: "cycles".into(),
    };
    vec![
        quantity("slowest", last),
        quantity("p99.9", last - last / 1000),
        quantity("median", last / 2),
        quantity("fastest", 0),
    ]
}

#[cfg(test)]
mod tests {
    use punctual_isolate::tree::Tree;

    use super::*;

    #[test]
    fn figures_in_cycles_are_those_of_sorted_times() {
        let sorted: Vec<u64> = (1..=2001).collect();
        let values: Vec<f64> = cycles(&sorted, "TSC").iter().map(|quantity| quantity.value).collect();
        assert_eq!(values, [2001., 1999., 1001., 1.]);
        assert!(cycles(&[], "TSC").is_empty() && cycles(&sorted, "CLOCK_MONOTONIC").is_empty());
    }

    /// A machine with two NUMA nodes of two CPUs, and caches of 32 KiB and 1 MiB.
    fn two_nodes() -> Topology {
        let mut tree = Tree::parse("")
            .with("/sys/devices/system/cpu/online", "0-3")
            .with("/sys/devices/system/node/node0/cpulist", "0-1")
            .with("/sys/devices/system/node/node1/cpulist", "2-3");
        for cpu in 0..4 {
            for (index, level, size) in [(0, "1", "32K"), (2, "2", "1M")] {
                let cache = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
                for (file, content) in [("level", level), ("size", size), ("type", "Data")] {
                    tree = tree.with(&format!("{cache}/{file}"), content);
                }
            }
        }
        Topology::read(&tree)
    }

    #[test]
    fn measures_one_cpu_of_each_node() {
        let found = others(&two_nodes(), 0, 1, &[0, 1, 2, 3]);
        let of = |cpu: usize| found.iter().filter(|other| other.cpu == cpu).collect::<Vec<_>>();
        // All caches and the memory of the own node, only the memory of the other one.
        assert_eq!([0, 1, 2, 3].map(|cpu| of(cpu).len()), [0, 13, 0, 5]);
        assert_eq!(of(1)[0].text(), "reads a buffer of L1 by the line, on its node 0");
        assert_eq!(of(1)[0].slug(), "L1-line-reads-node0");
        assert_eq!(of(3)[0].text(), "reads a buffer of 4 × L2 by the line, on node 1");
        assert_eq!(of(3)[0].step(), "interference, the other CPU of node 1 reads 4096 KiB by 64 B");
        assert_eq!(
            (of(3)[4].text(), of(3)[4].slug()),
            ("writes to a disk, on node 1".into(), "disk-writes-node1".into())
        );
        let mut slugs: Vec<_> = found.iter().map(Other::slug).collect();
        slugs.sort();
        slugs.dedup();
        assert_eq!(slugs.len(), found.len(), "{slugs:?}");
    }

    #[test]
    fn far_node_may_be_the_only_one_with_another_cpu() {
        let found = others(&two_nodes(), 1, 3, &[1, 3]);
        assert!(
            found.iter().all(|other| other.cpu == 3 && other.node == Some(Node { number: 1, is_own: false }))
        );
        assert_eq!(found.len(), 13);
    }

    #[test]
    fn names_no_nodes_on_a_machine_without() {
        let tree = Tree::parse("").with("/sys/devices/system/cpu/online", "0-1");
        let found = others(&Topology::read(&tree), 1, 0, &[0, 1]);
        // Without known caches, only the disk is left.
        assert_eq!(found, [Other { cpu: 0, node: None, activity: Activity::Writes }]);
        assert_eq!(found[0].slug(), "disk-writes");
    }

    #[test]
    fn takes_every_sample() {
        assert_eq!(sample(300).values().count(), 300);
    }
}
