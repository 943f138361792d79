//! The effect of another CPU on a short loop, through caches and memory: Wassen and Lankes' cache
//! victims.
//!
//! The loop reads one line of a small table, between two readings of the clock. Meanwhile another
//! CPU sweeps a buffer: with the size of each cache of the measured CPU and larger than the last,
//! line by line or page by page, reading or writing. If the two share an inclusive cache that
//! evicts one of the loop's lines, the loop must fetch the line from memory.

mod sweep;

use std::hint::black_box;

use self::sweep::{Access, Sweep, sweeping};
use crate::clock;
use crate::machine::{caches, read, topology};
use crate::model::{Quantity, Row};
use crate::options::{Plan, SuiteName};
use crate::recorder::Recorder;
use crate::rt;
use crate::session::{Session, Step};
use crate::stats::Statistics;
use crate::suite::Registration;

/// The size of the loop's table: half of the smallest existing first-level cache.
const TABLE: usize = 16 * 1024;
/// The size of a cache line.
const LINE: usize = 64;
const PAGE: usize = 4096;
/// The number of samples taken for each requested one, since the effect is rare.
const MORE: usize = 32;
/// The factor by which the largest buffer exceeds the last cache, and its maximum size.
const BEYOND: usize = 4;
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// Name of the suite.
pub const NAME: SuiteName = SuiteName("interference");

pub(super) const SUITE: Registration = Registration {
    name: NAME,
    title: "The effect of another CPU on a loop, through caches and memory",
    summary: "the effect of another CPU on a loop, through caches and memory",
    is_usual: true,
    has_references: false,
    steps,
};

fn steps(plan: &Plan) -> Vec<Step> {
    let mut steps = vec![Step::new("interference, quiet", |session| turn(session, None))];
    let mut sizes: Vec<(String, usize)> = caches(plan.cpu)
        .into_iter()
        .map(|cache| (format!("L{}", cache.level), cache.size as usize))
        .collect();
    if let Some((last, bytes)) = sizes.last().cloned() {
        sizes.push((format!("{BEYOND} × {last}"), (bytes * BEYOND).min(MAX_BYTES)));
    }
    for (name, bytes) in sizes {
        for (stride, by) in [(LINE, "line"), (PAGE, "page")] {
            for access in [Access::Reads, Access::Writes] {
                let what = format!("{} a buffer of {name} by the {by}", access.text());
                let slug = format!("{}-{by}-{}", name.replace(" × ", "x"), access.text());
                let sweep = Sweep { bytes, stride, access };
                let step = move |session: &mut Session<'_>| turn(session, Some((sweep, &what, &slug)));
                steps.push(Step::new(format!("interference, the other CPU {}", step_name(&sweep)), step));
            }
        }
    }
    steps
}

fn step_name(sweep: &Sweep) -> String {
    format!("{} {} KiB by {} B", sweep.access.text(), sweep.bytes / 1024, sweep.stride)
}

/// Measures the loop while the other CPU sweeps as requested, or idles.
fn turn(session: &mut Session<'_>, other: Option<(Sweep, &str, &str)>) {
    let (cpu, clock) = (session.plan.cpu, session.clock);
    let (subject, slug) = other.map_or(("nothing", "nothing"), |(_, what, slug)| (what, slug));
    let mut row = Row {
        id: format!("{}/loop/{slug}", NAME),
        operation: "One line of a table of 16 KiB".into(),
        subject: format!("the other CPU: {subject}"),
        operations_per_sample: 1,
        ..Row::default()
    };
    let samples = session.samples() * MORE;
    let measured = || rt::on_thread(cpu, rt::PRIORITY, |lack| (sample(samples), lack.clone()));
    let (recorder, lack) = match (other, session.plan.other_cpu) {
        (None, _) => measured(),
        (Some((sweep, ..)), Some(other_cpu)) => match sweeping(sweep, other_cpu, measured) {
            Ok(measured) => measured,
            Err(why) => return session.add_unmeasured(row, why),
        },
        (Some(_), None) => return session.add_unmeasured(row, "no other CPU"),
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
    use super::*;

    #[test]
    fn figures_in_cycles_are_those_of_sorted_times() {
        let sorted: Vec<u64> = (1..=2001).collect();
        let values: Vec<f64> = cycles(&sorted, "TSC").iter().map(|quantity| quantity.value).collect();
        assert_eq!(values, [2001., 1999., 1001., 1.]);
        assert!(cycles(&[], "TSC").is_empty() && cycles(&sorted, "CLOCK_MONOTONIC").is_empty());
    }

    #[test]
    fn takes_every_sample() {
        assert_eq!(sample(300).values().count(), 300);
    }
}
