//! The profile as a file, in the format `punctual-profile/5`.

use super::task::Figures;
use super::{Costs, tasks};
use crate::model;
use crate::observe::json::Json;
use crate::port::linux;
use crate::port::linux::tsc::Tsc;
use crate::report::Report;
use crate::state::partition::ThreadModel;
use crate::state::runtime::{Runtime, TaskInfo};

/// `figures` are those of the tasks, and then of `idle`; `stolen` is the time that the host took of
/// each CPU in the run, in ns.
pub(super) fn json(
    runtime: &'static Runtime,
    figures: &[Figures],
    report: &Report,
    placements: &[(Option<usize>, Costs)],
    stolen: &[Option<u64>],
) -> Json {
    let names: Vec<&str> = tasks(runtime).map(|task| task.name).collect();
    let all = tasks(runtime).zip(figures).map(|(it, figures)| task(runtime, &names, it, figures, report));
    let idle = match (runtime.host.model.idle, figures.last()) {
        (Some(_), Some(figures)) if runtime.options.profile => {
            Json::Object(vec![("holds", holds(runtime, figures))])
        }
        _ => Json::Null,
    };
    // The levels of the global executor are one partition on any CPU; a separate `idle` is not a
    // partition.
    let is_global = |partition: &model::Partition| partition.executor == model::Executor::Global;
    let partitions = match runtime.host.model.partitions {
        [one] if is_global(one) => {
            placements.first().into_iter().map(|place| partition(one.name, place, None)).collect()
        }
        _ => {
            let placed = runtime.partitions.iter().zip(placements).zip(stolen);
            let placed = placed.filter(|((partition, _), _)| partition.model != ThreadModel::Anywhere);
            placed.map(|((of, place), &stolen)| partition(of.name, place, stolen)).collect()
        }
    };
    Json::Object(vec![
        ("schema", "punctual-profile/5".into()),
        ("app", runtime.name.into()),
        ("duration_ns", (report.elapsed.as_nanos() as u64).into()),
        ("clock", clock(runtime, report).into()),
        ("machine", machine()),
        ("tasks", all.collect()),
        ("idle", idle),
        ("partitions", partitions),
    ])
}

fn task(runtime: &'static Runtime, names: &[&str], it: TaskInfo, figures: &Figures, report: &Report) -> Json {
    let TaskInfo { name, partition, .. } = it;
    let is_on_one_cpu = partition.model != ThreadModel::Anywhere;
    // Nothing is known of a task without jobs.
    let known = |value: u64| Json::from((figures.jobs > 0).then_some(value));
    // In virtual time, the CPU time of a thread is unrelated to that of a job.
    let outside = figures.outside_max.filter(|_| !report.virtual_time);
    let distances = figures.least.iter().enumerate().filter(|(_, least)| **least != u64::MAX);
    let distances = distances.map(|(back, &least)| {
        Json::Object(vec![("releases", (back as u64 + 2).into()), ("least_ns", least.into())])
    });
    let spawns = names.iter().zip(&figures.spawns).filter(|(_, spawns)| spawns.jobs.most > 0);
    let spawns = spawns.map(|(&name, spawns)| {
        Json::Object(vec![
            ("task", name.into()),
            ("most_per_job", u64::from(spawns.jobs.most).into()),
            ("earliest_ns", spawns.earliest.into()),
            ("in_section", spawns.in_section.into()),
        ])
    });
    let in_all = u64::from(figures.spawned.most);
    let (spawns, by_no_job, in_all, holds) = match runtime.options.profile {
        true => (spawns.collect(), figures.spawned_by_no_job.into(), in_all.into(), holds(runtime, figures)),
        false => (Json::Null, Json::Null, Json::Null, Json::Null),
    };
    Json::Object(vec![
        ("name", name.into()),
        ("jobs", figures.jobs.into()),
        ("execution_max_ns", known(figures.execution_max)),
        ("execution_min_ns", known(figures.execution_min)),
        ("response_max_ns", known(figures.response_max)),
        ("jitter_max_ns", known(figures.jitter_max)),
        ("lateness_max_ns", if is_on_one_cpu { known(figures.lateness_max) } else { Json::Null }),
        ("lateness_min_ns", if is_on_one_cpu { known(figures.lateness_min) } else { Json::Null }),
        ("deadline_misses", figures.deadline_misses.into()),
        ("overruns", report.task(name).map_or(0, |task| task.overruns).into()),
        ("inter_arrival", distances.collect()),
        ("spawns", spawns),
        ("spawned_by_no_job", by_no_job),
        ("spawns_most_per_job", in_all),
        ("holds", holds),
        ("cpu_max_ns", outside.map(|_| figures.cpu_max).into()),
        ("outside_max_ns", outside.into()),
        ("suspension_max_ns", known(figures.suspension_max)),
        ("suspensions_most_per_job", known(figures.suspensions_most)),
    ])
}

fn holds(runtime: &Runtime, figures: &Figures) -> Json {
    let all =
        runtime.host.model.resources.iter().zip(&figures.holds).filter(|(_, holds)| holds.locks.most > 0);
    let hold = all.map(|(resource, holds)| {
        Json::Object(vec![
            ("resource", resource.name.into()),
            ("longest_ns", holds.longest.into()),
            ("most_per_job", u64::from(holds.locks.most).into()),
            ("nested", holds.nested.into()),
        ])
    });
    hold.collect()
}

fn partition(name: &str, (cpu, costs): &(Option<usize>, Costs), stolen: Option<u64>) -> Json {
    Json::Object(vec![
        ("name", name.into()),
        ("cpu", cpu.map(|cpu| cpu as u64).into()),
        ("release_ns", costs.release.into()),
        ("dispatch_ns", costs.dispatch.into()),
        ("lock_ns", costs.lock.into()),
        ("preemption_ns", costs.preemption.into()),
        ("profiling_ns", costs.profiling.into()),
        ("profiling_before_ns", costs.profiling_before.into()),
        ("profiling_lock_ns", costs.profiling_lock.into()),
        ("stolen_ns", stolen.into()),
    ])
}

fn clock(runtime: &Runtime, report: &Report) -> &'static str {
    match report.virtual_time {
        true => "virtual",
        false
            if runtime.partitions.iter().all(|partition| partition.model == ThreadModel::Polling)
                && Tsc::is_there() =>
        {
            "tsc"
        }
        false => "monotonic",
    }
}

fn machine() -> Json {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let cpu = field("model name").or_else(|| field("Model")).or_else(|| field("CPU part"));
    Json::Object(vec![
        ("cpu", cpu.as_deref().unwrap_or(std::env::consts::ARCH).into()),
        ("kernel", linux::kernel().as_str().into()),
    ])
}
