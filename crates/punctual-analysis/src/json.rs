//! Results as JSON, schema `punctual-rta/1`. Times are integers in ns, shares are numbers, and
//! unknown values are `null`.

use serde::Serialize;

use crate::analyze::of_run;
use crate::bound::{Analysis, Bound, Exactness, Interferer};
use crate::chain::reaction;
use crate::explain;
use crate::margin::{Limit, Margins};
use crate::system::System;
use crate::time::Nanos;

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    app: &'a str,
    schedulable: bool,
    execution_growth_permille: u64,
    first_to_miss: Option<&'a str>,
    assumptions: &'a [String],
    tasks: Vec<TaskReport<'a>>,
    chains: Vec<ChainReport<'a>>,
}

#[derive(Serialize)]
struct ChainReport<'a> {
    name: &'a str,
    reaction_ns: Option<Nanos>,
    why_none: Option<String>,
    deadline_ns: Option<Nanos>,
}

#[derive(Serialize)]
struct TaskReport<'a> {
    name: &'a str,
    partition: &'a str,
    level: u32,
    execution_ns: Nanos,
    deadline_ns: Option<Nanos>,
    observed_response_ns: Option<Nanos>,
    /// Bound for the observed run, including the cost of profiling.
    profiled_response_ns: Option<Nanos>,
    bound: Option<BoundReport<'a>>,
    why_none: Option<String>,
    margins: Option<MarginReport<'a>>,
}

#[derive(Serialize)]
struct BoundReport<'a> {
    response_ns: Nanos,
    exact: bool,
    meets_deadline: bool,
    jitter_ns: Nanos,
    window_ns: Nanos,
    released_ns: Nanos,
    blocking_ns: Nanos,
    blocked_by: Option<&'a str>,
    blocked_on: Option<&'a str>,
    jobs: u64,
    execution_ns: Nanos,
    overhead_ns: Nanos,
    spinning_ns: Nanos,
    suspension_ns: Nanos,
    not_supplied_ns: Nanos,
    /// Bound that ignores offsets, if offsets shortened it.
    without_offsets_ns: Option<Nanos>,
    interference: Vec<Term<'a>>,
}

#[derive(Serialize)]
struct Term<'a> {
    source: &'a str,
    kind: &'static str,
    jobs: u64,
    execution_ns: Nanos,
    overhead_ns: Nanos,
}

#[derive(Serialize)]
struct MarginReport<'a> {
    execution_ns: Nanos,
    execution_first_to_miss: Option<&'a str>,
    period_ns: Option<Nanos>,
    period_first_to_miss: Option<&'a str>,
    jitter_ns: Nanos,
    jitter_first_to_miss: Option<&'a str>,
    holds: Vec<HoldReport<'a>>,
}

#[derive(Serialize)]
struct HoldReport<'a> {
    resource: &'a str,
    hold_ns: Nanos,
    first_to_miss: Option<&'a str>,
}

/// Formats the complete result.
#[must_use]
pub fn json(system: &System, analysis: &Analysis, margins: &Margins) -> String {
    let name = |at: usize| system.tasks[at].name.as_str();
    let of_run = of_run(system, analysis);
    let tasks = (0..system.tasks.len()).map(|at| {
        let task = &system.tasks[at];
        TaskReport {
            name: &task.name,
            partition: &system.partitions[task.partition].name,
            level: task.level,
            execution_ns: task.execution,
            deadline_ns: task.deadline,
            observed_response_ns: task.observed.response,
            profiled_response_ns: of_run[at],
            bound: analysis.tasks[at].as_ref().ok().map(|bound| bound_report(system, at, bound)),
            why_none: analysis.tasks[at].as_ref().err().map(|reason| explain::why_none(system, at, reason)),
            margins: margins.tasks.get(at).map(|margins| {
                let first = |limit: &Limit| limit.first.map(name);
                let holds = margins.holds.iter().zip(&task.sections).map(|(limit, section)| HoldReport {
                    resource: &system.resources[section.resource].name,
                    hold_ns: limit.until,
                    first_to_miss: first(limit),
                });
                MarginReport {
                    execution_ns: margins.execution.until,
                    execution_first_to_miss: first(&margins.execution),
                    period_ns: margins.period.map(|limit| limit.until),
                    period_first_to_miss: margins.period.as_ref().and_then(first),
                    jitter_ns: margins.jitter.until,
                    jitter_first_to_miss: first(&margins.jitter),
                    holds: holds.collect(),
                }
            }),
        }
    });
    let chains = system.chains.iter().map(|chain| {
        let reaction = reaction(system, analysis, chain);
        ChainReport {
            name: &chain.name,
            reaction_ns: reaction.as_ref().ok().copied(),
            why_none: reaction.err(),
            deadline_ns: chain.deadline,
        }
    });
    let report = Report {
        schema: "punctual-rta/1",
        app: &system.name,
        schedulable: analysis.is_schedulable(system),
        execution_growth_permille: margins.all.permille,
        first_to_miss: margins.all.first.map(name),
        assumptions: &system.assumptions,
        tasks: tasks.collect(),
        chains: chains.collect(),
    };
    serde_json::to_string_pretty(&report).expect("it has numbers, texts and lists of them only")
}

fn bound_report<'a>(system: &'a System, at: usize, bound: &Bound) -> BoundReport<'a> {
    let name = |at: usize| system.tasks[at].name.as_str();
    let terms = bound.interference.iter().map(|term| {
        let (source, kind) = match term.who {
            Interferer::Higher(at) => (name(at), "higher"),
            Interferer::Peer(at) => (name(at), "peer"),
            Interferer::Interrupt(at) => (system.interrupts[at].name.as_str(), "interrupt"),
            Interferer::Release(at) => (name(at), "release"),
        };
        let work = term.work;
        Term { source, kind, jobs: work.jobs, execution_ns: work.execution, overhead_ns: work.overhead }
    });
    let blocking = bound.blocking;
    BoundReport {
        response_ns: bound.response,
        exact: bound.exactness == Exactness::Exact,
        meets_deadline: bound.meets(system.tasks[at].deadline),
        jitter_ns: bound.jitter,
        window_ns: bound.window,
        released_ns: bound.released,
        blocking_ns: blocking.map_or(0, |blocking| blocking.time),
        blocked_by: blocking.map(|blocking| blocking.by.map_or("idle", name)),
        blocked_on: blocking.and_then(|it| it.resource).map(|at| system.resources[at].name.as_str()),
        jobs: bound.own.jobs,
        execution_ns: bound.own.execution - bound.spinning - bound.suspension,
        overhead_ns: bound.own.overhead,
        spinning_ns: bound.spinning,
        suspension_ns: bound.suspension,
        not_supplied_ns: bound.not_supplied,
        without_offsets_ns: bound.without_offsets,
        interference: terms.collect(),
    }
}
