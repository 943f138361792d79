//! Scheduling policies and affinities: the five cases of Lin, with the expected finishing orders.
//!
//! App 1 finds the edges in an image, by Canny's method; apps 2 and 3 calculate. Each has about the
//! same amount of work. App 1 starts the others. The verdict depends on the order of starts and
//! ends; where equal amounts of work make that ambiguous, it depends on how much later the last app
//! ends, as derived from the number of CPUs.

mod cases;
mod edges;
mod work;

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use crate::clock;
use crate::model::{Check, Quantity, Row, Verdict};
use crate::options::{Plan, SuiteName};
use crate::peers::Semaphore;
use crate::rt;
use crate::session::{Session, Step};
use crate::stats::Statistics;
use crate::suites::Registration;
use cases::{App, CASES, Case, Policy, Times};
use work::Work;

/// Name of the suite.
pub const NAME: SuiteName = SuiteName("policies");

pub(super) const SUITE: Registration = Registration {
    name: NAME,
    title: "Scheduling policies and affinities",
    summary: "finishing order of FIFO, round-robin and ordinary threads, pinned and unpinned",
    is_usual: true,
    has_references: false,
    steps,
};

fn steps(_: &Plan) -> Vec<Step> {
    // Calibrated once, by the first case that runs.
    let work = Rc::new(OnceCell::new());
    let step = |case: &'static Case| {
        let work = work.clone();
        Step::new(format!("case {}", case.number), move |session| {
            let (cpu, clock) = (session.plan.cpu, session.clock);
            play(session, case, work.get_or_init(|| Work::measured(cpu, &clock)));
        })
    };
    CASES.iter().map(step).collect()
}

/// The duration of one app's work on an idle CPU.
const WORK_NS: f64 = 400e6;
const QUICK_WORK_NS: f64 = 50e6;
/// The same if threads take turns: more than one round-robin time slice, which is 100 ms by
/// default.
const QUICK_TURNS_WORK_NS: f64 = 150e6;

/// Runs a case as often as requested and adds its rows and its check.
fn play(session: &mut Session<'_>, case: &'static Case, work: &Work) {
    let expected = case.expected(rt::allowed_cpus().len());
    let (runs, work_ns) = match session.plan.quick {
        false => (5.min(session.samples()), WORK_NS),
        true if case.apps.iter().any(|app| app.policy == Policy::RoundRobin) => (1, QUICK_TURNS_WORK_NS),
        true if expected.is_of_times() => (3, QUICK_WORK_NS),
        true => (1, QUICK_WORK_NS),
    };
    let mut all: Vec<[Times; 3]> = Vec::new();
    let mut lack = rt::Lack::new();
    for _ in 0..runs {
        if session.stop.is_requested() {
            break;
        }
        let (times, lacks) = once(case, (work, work_ns), session.plan.cpu);
        all.push(times);
        lack.extend(lacks);
    }
    lack.sort();
    lack.dedup();
    for (index, app) in case.apps.iter().enumerate() {
        let mut ends = Statistics::new();
        all.iter().for_each(|times| ends.record_ps(session.clock.ps(times[index].end)));
        let mut cpu = Statistics::new();
        all.iter().for_each(|times| cpu.record_ps(times[index].cpu_ns.saturating_mul(1000)));
        let cpu = cpu.distribution().map(|cpu| Quantity {
            name: "of it processor time of its work, median".into(),
            value: cpu.p50_ns,
            unit: "ns".into(),
        });
        let row = Row {
            quantities: cpu.into_iter().collect(),
            id: format!("{}/{}/app-{}", NAME, case.number, index + 1),
            operation: format!("Case {}, {}: until it ends", case.number, case.title),
            subject: format!("app {}, {}", index + 1, app.describe()),
            operations_per_sample: 1,
            published: app.published(index + 1),
            ..Row::default()
        };
        session.add_figures(row, ends.distribution(), &lack);
    }
    if all.is_empty() {
        return;
    }
    let (cpus, clock) = (rt::allowed_cpus().len(), session.clock);
    let of_all = all.len();
    let judged: Vec<_> =
        all.iter().filter(|times| !expected.is_disturbed(times, cpus, |ticks| clock.ns(ticks))).collect();
    let conforming = judged.iter().filter(|times| expected.holds(times)).count();
    let mut orders: Vec<String> = all.iter().map(cases::order).collect();
    orders.sort();
    orders.dedup();
    let mut why: Vec<String> = session.no_fifo.clone().into_iter().collect();
    if judged.is_empty() {
        why.push("other programs used most of the CPU time, so the times are meaningless".into());
    }
    session.check(Check {
        id: format!("{}/{}", NAME, case.number),
        rule: format!("case {}, {}", case.number, case.title),
        subject: "this kernel".into(),
        verdict: match if expected.is_of_times() {
            2 * conforming > judged.len()
        } else {
            conforming == judged.len()
        } {
            _ if !why.is_empty() => Verdict::NotMeaningful,
            true => Verdict::Passed,
            false => Verdict::Failed,
        },
        expected: format!("{expected}"),
        observed: match of_all - judged.len() {
            0 => format!("{}; as expected in {conforming} of {of_all} runs", orders.join(" or ")),
            disturbed => format!(
                "{}; as expected in {conforming} of {} runs, {disturbed} more were disturbed",
                orders.join(" or "),
                judged.len()
            ),
        },
        why,
    });
    if case.number == 3 {
        session.note(
            "In case 3 Lin observed and expected that app 2 ends first. Under SCHED_FIFO app 1 runs until it ends or \
             sleeps; Lin's app wrote its image to a file, this one does not.",
        );
    }
}

/// Starts the three apps one after the other and waits for them. Times are relative to the start of
/// the first.
///
/// The first app starts the others as its first action. So they cannot be ahead of it, in whatever
/// order they wake up.
fn once(case: &Case, (work, work_ns): (&Work, f64), cpu: usize) -> ([Times; 3], rt::Lack) {
    let starts: [Semaphore; 3] = std::array::from_fn(|_| Semaphore::new(0));
    let ready = std::sync::Barrier::new(4);
    let times = Mutex::new([Times::default(); 3]);
    let run = |index: usize, app: &App| {
        let mut lack = rt::Lack::new();
        if case.pinned
            && let Err(error) = rt::pin(cpu)
        {
            lack.push(format!("not pinned to CPU {cpu}: {error}"));
        }
        lack.extend(app.policy.apply().err().map(|error| format!("no {}: {error}", app.policy.name())));
        ready.wait();
        starts[index].acquire();
        let begin = clock::now();
        if index == 0 {
            starts[1..].iter().for_each(Semaphore::signal);
        }
        let cpu_ns = cpu_time_ns();
        work.do_it(app.kind, work_ns);
        let cpu_ns = cpu_time_ns() - cpu_ns;
        let end = clock::now();
        // The others may still be working: this is short, and the times are recorded.
        times.lock().unwrap_or_else(PoisonError::into_inner)[index] = Times { begin, end, cpu_ns };
        lack
    };
    let lack = std::thread::scope(|scope| {
        let run = &run;
        let apps: Vec<_> = case
            .apps
            .iter()
            .enumerate()
            .map(|(index, app)| rt::spawn(scope, move || run(index, app)))
            .collect();
        ready.wait();
        starts[0].signal();
        apps.into_iter().flat_map(rt::join).collect()
    });
    let times = times.into_inner().unwrap_or_else(PoisonError::into_inner);
    (times.map(|each| each.since(times[0].begin)), lack)
}

/// Returns the CPU time of the calling thread.
fn cpu_time_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Policy {
    fn apply(self) -> std::io::Result<()> {
        match self {
            Self::Fifo => rt::set_policy(libc::SCHED_FIFO, cases::PRIORITY),
            Self::RoundRobin => rt::set_policy(libc::SCHED_RR, cases::PRIORITY),
            Self::Ordinary => Ok(()),
        }
    }
}
