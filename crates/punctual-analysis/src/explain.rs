//! Explains bounds in sentences, and states why a bound is missing.

use punctual_report::format::{format_count, format_part};
use punctual_report::text::listed;

use crate::analyze;
use crate::bound::{Analysis, Blocking, Bound, Exactness, Interference, Interferer, NoBound};
use crate::fraction::Fraction;
use crate::system::{Interrupt, System, Task};
use crate::time::Nanos;

/// Explains the bound of a task, or the reason for a missing bound, sentence by sentence.
#[must_use]
pub fn explain(system: &System, analysis: &Analysis, at: usize) -> Vec<String> {
    let task = &system.tasks[at];
    match &analysis.tasks[at] {
        Ok(bound) => sentences(system, task, bound),
        Err(reason) => vec![why_none(system, at, reason)],
    }
}

/// Returns the task whose bound is closest to its deadline or furthest past it, relative to the
/// deadline.
#[must_use]
pub fn tightest(system: &System, analysis: &Analysis) -> Option<usize> {
    let of_deadline = |at: usize| {
        let deadline = system.tasks[at].deadline?.max(1);
        let response = analysis.tasks[at].as_ref().map_or(f64::INFINITY, |bound| bound.response as f64);
        Some(response / deadline as f64)
    };
    let shares = (0..system.tasks.len()).filter_map(|at| Some((at, of_deadline(at)?)));
    shares.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at)
}

fn sentences(system: &System, task: &Task, bound: &Bound) -> Vec<String> {
    let mut out = vec![verdict(task, bound)];
    if bound.jitter > 0 {
        out.push(format!("It may become ready {} after its nominal release.", time(bound.jitter)));
    }
    out.extend(bound.blocking.map(|blocking| blocked(system, task, blocking)));
    out.push(own_work(task, bound));
    for term in &bound.interference {
        out.push(displaced(system, term));
    }
    if bound.not_supplied > 0 {
        out.push(format!("For {} the CPU is not the app's.", time(bound.not_supplied)));
    }
    if let Some(longer) = bound.without_offsets {
        let longer = time(longer);
        out.push(format!("Offsets keep releases apart; if they came at any time, it could take {longer}."));
    }
    out.push(match bound.exactness {
        Exactness::Exact => "The bound is exact: a job of this model can take that long.".into(),
        Exactness::Sufficient => {
            "The bound is sufficient: no job takes longer, and possibly none takes that long.".into()
        }
    });
    out
}

fn verdict(task: &Task, bound: &Bound) -> String {
    let (name, response) = (&task.name, time(bound.response));
    match task.deadline {
        None => format!("`{name}` ends within {response} of its release; it has no deadline."),
        Some(deadline) if bound.response <= deadline => format!(
            "`{name}` ends within {response} of its release, {} before its deadline of {}.",
            time(deadline - bound.response),
            time(deadline)
        ),
        Some(deadline) => format!(
            "`{name}` may end {response} after its release, {} after its deadline of {}.",
            time(bound.response - deadline),
            time(deadline)
        ),
    }
}

fn blocked(system: &System, task: &Task, blocking: Blocking) -> String {
    let Blocking { time: all, times, by, resource, spinning } = blocking;
    let who = by.map_or("`idle`".into(), |by| format!("`{}`", system.tasks[by].name));
    let each = all / times.max(1);
    let mut out = match resource {
        Some(resource) => {
            let resource = &system.resources[resource].name;
            format!(
                "{who} may have just locked `{resource}`, which keeps level {} waiting for {}",
                task.level,
                time(each)
            )
        }
        None => format!("A job of {who} may have just begun, and continues for {}", time(each)),
    };
    if spinning > 0 {
        out += &format!(", {} of it spinning for other CPUs", time(spinning));
    }
    if times > 1 {
        out += &format!("; after each wait again, {} times in all, {}", format_count(times), time(all));
    }
    out + "."
}

fn own_work(task: &Task, bound: &Bound) -> String {
    let own = bound.own;
    let is_one = own.jobs <= 1;
    let (mut out, execution) = if is_one {
        ("It".to_owned(), task.execution)
    } else {
        let worst = format!(
            "Worst is job {} of a busy window, ready {} after its start; the jobs until then",
            format_count(own.jobs),
            time(bound.released)
        );
        (worst, own.execution - bound.spinning - bound.suspension)
    };
    let mut clauses: Vec<String> = Vec::new();
    for (one, many, part) in [
        ("executes for", "execute for", execution),
        ("spins for other CPUs for", "spin for other CPUs for", bound.spinning),
        ("waits for", "wait for", bound.suspension),
        ("costs the executor", "cost the executor", own.overhead),
    ] {
        if part > 0 || clauses.is_empty() {
            clauses.push(format!("{} {}", if is_one { one } else { many }, time(part)));
        }
    }
    out += &format!(" {}.", listed(&clauses));
    out
}

fn displaced(system: &System, term: &Interference) -> String {
    let Interference { who, work } = term;
    let (jobs, all) = (format_count(work.jobs), time(work.time()));
    let s = if work.jobs == 1 { "" } else { "s" };
    let often = if work.jobs == 1 { "once".to_owned() } else { format!("{jobs} times") };
    match *who {
        Interferer::Higher(at) if work.jobs == 0 => {
            format!("`{}` displaces it for {all}.", system.tasks[at].name)
        }
        Interferer::Higher(at) => {
            format!("`{}` displaces it by {jobs} job{s}, {all}.", system.tasks[at].name)
        }
        Interferer::Peer(at) => {
            format!("`{}` of the same level goes first with {jobs} job{s}, {all}.", system.tasks[at].name)
        }
        Interferer::Interrupt(at) => {
            format!("`{}` interrupts it {often}, {all}.", system.interrupts[at].name)
        }
        Interferer::Release(at) => format!("Releasing `{}` {often} costs {all}.", system.tasks[at].name),
    }
}

/// States why a task has no bound.
#[must_use]
pub fn why_none(system: &System, at: usize, reason: &NoBound) -> String {
    let name = &system.tasks[at].name;
    let of = |at: &usize| format!("`{}`", system.tasks[*at].name);
    match reason {
        NoBound::Overload { tasks, utilization, supply } => {
            let (need, there) = (utilization.as_f64() * 100.0, supply.as_f64() * 100.0);
            let (verb, whom) = if tasks.len() == 1 { ("needs", "it") } else { ("need", "them") };
            let (names, interrupts) =
                (named(system, tasks), most_interrupts(system, system.tasks[at].partition));
            let with = match interrupts.is_empty() {
                true => String::new(),
                false => format!(" with what interrupts {whom} ({interrupts})"),
            };
            let supplied = if utilization == supply {
                "which leaves no time to catch up after a late or blocked job".to_owned()
            } else if format!("{need:.1}") == format!("{there:.1}") {
                "slightly more than there is".to_owned()
            } else {
                format!("and there are {there:.1} %")
            };
            format!("`{name}` has no bound: {names} {verb} {need:.1} % of the CPU{with}, {supplied}.")
        }
        NoBound::Suspension { displacing, own, displacement } => {
            let percent = |share: &Fraction| share.as_f64() * 100.0;
            let own = format!(
                "`{name}` has no bound: it executes and waits for {:.1} % of its period",
                percent(own)
            );
            if *displacement == Fraction::ZERO {
                return format!("{own}.");
            }
            let interrupts = most_interrupts(system, system.tasks[at].partition);
            let verb = if displacing.len() == 1 { "takes" } else { "take" };
            let names = named(system, displacing);
            let who = match (names.is_empty(), interrupts.is_empty()) {
                (true, _) => format!("interrupts ({interrupts})"),
                (false, true) => names,
                (false, false) => format!("{names} with interrupts ({interrupts})"),
            };
            format!(
                "{own}, and {who} {verb} {:.1} % of the CPU; the sum must stay below {:.1} %.",
                percent(displacement),
                percent(&system.partitions[system.tasks[at].partition].supply.rate())
            )
        }
        NoBound::DependsOn(other) => format!("`{name}` has no bound, since {} has none.", of(other)),
        NoBound::NoArrivals => {
            format!(
                "`{name}` has no bound: its release rate is unknown. Give it a `min_interval`, or profile a run."
            )
        }
        NoBound::TooLong => {
            let share = analyze::utilization(system, system.tasks[at].partition).as_f64() * 100.0;
            format!("`{name}` has no bound that can be computed: {share:.4} % of the CPU is used.")
        }
        NoBound::NoAnalysis(why) => format!("`{name}` has no bound: {why}."),
    }
}

/// Names the tasks that cause an overload, or the first ones of many, since each of them may have
/// such a sentence.
fn named(system: &System, tasks: &[usize]) -> String {
    let name = |at: &usize| format!("`{}`", system.tasks[*at].name);
    let shown = if tasks.len() > MAX_TASKS { MAX_TASKS - 1 } else { tasks.len() };
    let mut names: Vec<String> = tasks[..shown].iter().map(name).collect();
    if shown < tasks.len() {
        names.push(format!("{} more tasks", tasks.len() - shown));
    }
    listed(&names)
}

/// Maximum number of tasks to name as causes of an overload.
const MAX_TASKS: usize = 8;
/// Maximum number of interrupts to name as causes of an overload.
const NAMED: usize = 3;

/// Names the most demanding sources above all levels of a partition; empty if their share is
/// negligible.
fn most_interrupts(system: &System, partition: usize) -> String {
    let interrupts = system.interrupts.iter().filter(|it| it.partition == partition);
    let share = |it: &Interrupt| it.arrivals.rate().times(it.execution).as_f64() * 100.0;
    let mut shares: Vec<(f64, &str)> = interrupts.map(|it| (share(it), it.name.as_str())).collect();
    shares.retain(|&(share, _)| share >= 0.05);
    shares.sort_by(|a, b| b.0.total_cmp(&a.0));
    let named: Vec<String> =
        shares.iter().take(NAMED).map(|(share, name)| format!("`{name}` {share:.1} %")).collect();
    let rest = if shares.len() > NAMED { ", …" } else { "" };
    named.join(", ") + rest
}

fn time(ns: Nanos) -> String {
    format_part(ns)
}
