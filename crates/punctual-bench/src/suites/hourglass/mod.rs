//! A loop that only reads the clock, and its interruptions: Wassen and Lankes' hourglass.
//!
//! Two readings that are further apart than the readings take are a *gap*, caused by an interrupt,
//! another task, or the host of a virtual machine. The loop runs pinned as an ordinary thread and
//! as a SCHED_FIFO one; if the CPU is isolated, also on one that is not. With access to the
//! kernel's tracer each gap is matched with the kernel's activity at that time.

mod attribute;
mod watch;

use crate::clock;
use crate::machine::{isolated, stolen_ns, topology};
use crate::model::{Cause, Quantity, Row};
use crate::options::{Plan, SuiteName};
use crate::rt::{self, Lack};
use crate::session::{Session, Step};
use crate::stats::Statistics;
use crate::suites::Registration;
use crate::tracefs::Instance;
use watch::{Watch, Watched};

/// The shortest distance of two readings that counts as a gap: published results on an isolated CPU
/// stay below it.
const GAP_NS: f64 = 500.0;

/// The events that show the kernel's activity on a CPU.
const EVENTS: [&str; 9] = [
    "sched/sched_switch",
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "irq/softirq_entry",
    "irq/softirq_exit",
    "ipi/ipi_entry",
    "ipi/ipi_exit",
    "irq_vectors",
    "nmi/nmi_handler",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    Ordinary,
    Fifo,
}

/// Name of the suite.
pub const NAME: SuiteName = SuiteName("hourglass");

pub(super) const SUITE: Registration = Registration {
    name: NAME,
    title: "Interruptions of a loop",
    summary: "what preempts a loop that only reads the clock",
    is_usual: true,
    has_references: false,
    steps,
};

fn steps(plan: &Plan) -> Vec<Step> {
    let mut cpus = vec![plan.cpu];
    let isolated = isolated();
    if isolated.has(plan.cpu) {
        // A CPU without isolation, to show the benefit.
        cpus.extend(rt::allowed_cpus().into_iter().rev().find(|&cpu| !isolated.has(cpu)));
    }
    let mut steps = Vec::new();
    for cpu in cpus {
        for policy in [Policy::Ordinary, Policy::Fifo] {
            let name = if policy == Policy::Fifo { "SCHED_FIFO" } else { "ordinary thread" };
            let what = format!("hourglass, {name}, CPU {cpu}, {} s", plan.hourglass.as_secs_f64());
            steps.push(Step::new(what, move |session| turn(session, policy, cpu)));
        }
    }
    steps
}

/// Describes the isolation of a CPU in a few words; `None` if there is none.
fn isolation(cpu: usize) -> Option<String> {
    let mut in_force = Vec::new();
    if isolated().has(cpu) {
        in_force.push("isolated");
    }
    if topology().tickless.has(cpu) {
        in_force.push("without tick");
    }
    (!in_force.is_empty()).then(|| in_force.join(", "))
}

/// Runs the hourglass once.
fn turn(session: &mut Session<'_>, policy: Policy, cpu: usize) {
    let (slug, subject) = match policy {
        Policy::Ordinary => ("ordinary", "ordinary thread"),
        Policy::Fifo => ("fifo", "SCHED_FIFO"),
    };
    let isolation = isolation(cpu);
    if isolation.is_none() {
        session.note(format!("CPU {cpu} is not isolated."));
    }
    let row = Row {
        id: match isolation {
            Some(_) => format!("{}/loop/{slug}/isolated", NAME),
            None => format!("{}/loop/{slug}", NAME),
        },
        operation: "Clock reading to clock reading".into(),
        subject: subject.into(),
        condition: isolation,
        operations_per_sample: 1,
        ..Row::default()
    };
    let clock = session.clock;
    let watch = Watch::new(clock.ticks(session.plan.hourglass.as_nanos() as f64), clock.ticks(GAP_NS));
    let instance = Instance::create(cpu, &clock, &EVENTS);
    if let Err(why) = &instance {
        session.note(format!("The causes of the gaps are unknown: {why}"));
    }
    let mut lack = Lack::new();
    let stop = session.stop;
    let stolen = stolen_ns(cpu);
    let watched = std::thread::scope(|scope| {
        let body = || {
            if policy == Policy::Fifo {
                lack = rt::enter(cpu, rt::PRIORITY);
            } else if let Err(error) = rt::pin(cpu) {
                lack.push(format!("not pinned to CPU {cpu}: {error}"));
            }
            if let Ok(instance) = &instance {
                instance.switch_on();
            }
            let watched = watch.run(stop);
            if let Ok(instance) = &instance {
                instance.switch_off();
            }
            watched
        };
        rt::join(rt::spawn(scope, body))
    });
    let stolen = stolen_ns(cpu).zip(stolen).map(|(now, then)| now.saturating_sub(then));
    let mut row = Row { quantities: quantities(&watched, &clock), ..row };
    if let Some(stolen) = stolen {
        row.quantities.push(quantity("stolen by the hypervisor", stolen as f64 / 1e6, "ms"));
    }
    if let Ok(instance) = &instance {
        match causes(instance, &watched, &clock) {
            Ok((causes, lost)) => {
                row.quantities.extend(explained(&causes, stolen));
                row.causes = causes;
                if lost > 0 {
                    session.note(format!(
                        "The kernel's tracer lost {lost} events; their gaps are attributed to the host."
                    ));
                }
            }
            Err(error) => session.note(format!("The causes of the gaps are unknown: {error}")),
        }
    }
    if watched.is_full {
        session.note("Ended early: the buffer for gaps is full.");
    }
    let mut statistics = Statistics::new();
    for (ticks, &count) in watched.passes.iter().enumerate() {
        statistics.record_many_ps(clock.ps(ticks as u64), count);
    }
    watched.long.iter().for_each(|long| statistics.record_ps(clock.ps(long.to - long.from)));
    match policy {
        Policy::Fifo => session.add_figures(row, statistics.distribution(), &lack),
        Policy::Ordinary => {
            row.why.extend(lack);
            session.add_plain(row, statistics.distribution());
        }
    }
}

/// Returns the further quantities of a run.
fn quantities(watched: &Watched, clock: &clock::Clock) -> Vec<Quantity> {
    let elapsed_ns = clock.ns(watched.to - watched.from).max(1.0);
    let seconds = elapsed_ns / 1e9;
    let passes = watched.count();
    let usual = watched.usual_pass();
    let lost: u64 = watched.gaps().map(|gap| (gap.to - gap.from).saturating_sub(usual)).sum();
    vec![
        quantity("lost to gaps", 100.0 * clock.ns(lost) / elapsed_ns, "%"),
        quantity("gaps of 500 ns and more", watched.gaps().count() as f64 / seconds, "1/s"),
        quantity("readings of the clock", passes as f64 / seconds, "1/s"),
    ]
}

fn quantity(name: &str, value: f64, unit: &str) -> Quantity {
    Quantity { name: name.into(), value, unit: unit.into() }
}

/// Returns the share of the gaps' time that kernel events or the hypervisor's steal time explain;
/// `None` without gaps.
fn explained(causes: &[Cause], stolen_ns: Option<u64>) -> Option<Quantity> {
    let total: f64 = causes.iter().map(|cause| cause.total_ns).sum();
    let host: f64 =
        causes.iter().filter(|cause| cause.name == attribute::HOST).map(|cause| cause.total_ns).sum();
    let unknown = (host - stolen_ns.unwrap_or(0) as f64).max(0.0);
    (total > 0.0).then(|| quantity("explained", 100.0 * (1.0 - unknown / total), "%"))
}

/// Returns the causes of the gaps, longest first, and the number of lost events.
fn causes(
    instance: &Instance,
    watched: &Watched,
    clock: &clock::Clock,
) -> std::io::Result<(Vec<Cause>, u64)> {
    let trace = instance.read()?;
    let events = attribute::parse(&trace.text, watched.thread);
    let gaps: Vec<_> = watched.gaps().map(|gap| (trace.time.of(gap.from), trace.time.of(gap.to))).collect();
    let shares = attribute::attribute(&events, &gaps, trace.time.units(3_000.0));
    let ns = |units: u64| trace.time.ns(units, clock);
    let causes = shares.into_iter().map(|share| Cause {
        name: share.name,
        count: share.gaps,
        total_ns: ns(share.total),
        max_ns: ns(share.max),
    });
    Ok((causes.collect(), trace.lost))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_stolen_time_to_the_hypervisor() {
        let cause = |name: &str, total_ns| Cause { name: name.into(), count: 1, total_ns, max_ns: total_ns };
        let causes = [cause("timer tick", 60e6), cause(attribute::HOST, 40e6)];
        let percent = |stolen| explained(&causes, stolen).map(|quantity| quantity.value.round());
        assert_eq!(percent(None), Some(60.0));
        assert_eq!(percent(Some(30_000_000)), Some(90.0));
        assert_eq!(percent(Some(50_000_000)), Some(100.0), "it is counted in ticks");
        assert!(explained(&[], Some(1)).is_none());
    }
}
