//! The model as a file, in the format `punctual-model/1`.

use std::path::Path;

use punctual_core::{Duration, Periodic};

use crate::model::{
    Access, Executor, Kind, Model, OnBudget, OnEarly, OnOverrun, Partition, Protocol, Resource, Task, Use,
};
use crate::observe::json::Json;

/// Writes the model into the file that `PUNCTUAL_MODEL` names.
pub(super) fn write(model: &Model, path: &Path) -> std::io::Result<()> {
    punctual_files::write(path, format!("{}\n", text(model)).as_bytes())
}

/// Returns the model as JSON.
pub(super) fn text(model: &Model) -> String {
    json(model).to_string()
}

fn json(model: &Model) -> Json {
    let idle = model.idle.map(|idle| {
        Json::Object(vec![
            ("partition", idle.partition.into()),
            ("uses", idle.uses.iter().map(used).collect()),
        ])
    });
    Json::Object(vec![
        ("schema", "punctual-model/1".into()),
        ("app", model.app.into()),
        ("partitions", model.partitions.iter().map(partition).collect()),
        ("tasks", model.tasks.iter().map(task).collect()),
        ("resources", model.resources.iter().map(resource).collect()),
        ("idle", idle.unwrap_or(Json::Null)),
    ])
}

fn partition(partition: &Partition) -> Json {
    let executor = match partition.executor {
        Executor::Preemptive => "preemptive",
        Executor::Polling => "polling",
        Executor::Global => "global",
    };
    let cpu = partition.cpu.map(|cpu| cpu as u64);
    Json::Object(vec![("name", partition.name.into()), ("executor", executor.into()), ("cpu", cpu.into())])
}

fn task(task: &Task) -> Json {
    let kind = match task.kind {
        Kind::Periodic => "periodic",
        Kind::Message => "message",
        Kind::Bound => "bound",
        Kind::Async => "async",
    };
    let on_overrun = task.on_overrun.map(OnOverrun::name);
    let on_early = task.on_early.map(|policy| match policy {
        OnEarly::Count => "count",
        OnEarly::Delay => "delay",
        OnEarly::Reject => "reject",
    });
    let on_budget = task.on_budget.map(|policy| match policy {
        OnBudget::Report => "report",
        OnBudget::Stop => "stop",
        OnBudget::Kill => "kill",
    });
    Json::Object(vec![
        ("name", task.name.into()),
        ("kind", kind.into()),
        ("partition", task.partition.into()),
        ("level", u64::from(task.level).into()),
        // The analysis needs the shortest distance of releases. A grid that follows another clock
        // has no fixed offset from the grids of other tasks.
        (
            "period_ns",
            nanos(task.period.map(|period| task.clock.map_or(period, |_| Periodic::shortest(period)))),
        ),
        ("offset_ns", nanos(task.offset.filter(|_| task.clock.is_none()))),
        ("clock", task.clock.into()),
        ("deadline_ns", nanos(task.deadline)),
        ("min_interval_ns", nanos(task.min_interval)),
        ("burst", task.burst.map(u64::from).into()),
        ("capacity", u64::from(task.capacity).into()),
        ("on_overrun", on_overrun.into()),
        ("on_early", on_early.into()),
        ("budget_ns", nanos(task.budget)),
        ("on_budget", on_budget.into()),
        ("uses", task.uses.iter().map(used).collect()),
    ])
}

fn resource(resource: &Resource) -> Json {
    let protocol = match resource.protocol {
        Protocol::None => "none",
        Protocol::Srp => "srp",
        Protocol::Msrp => "msrp",
        Protocol::Pcp => "pcp",
    };
    Json::Object(vec![
        ("name", resource.name.into()),
        ("ceiling", u64::from(resource.ceiling).into()),
        ("protocol", protocol.into()),
        ("group", resource.group.map(u64::from).into()),
        ("partitions", resource.partitions.iter().map(|&name| name.into()).collect()),
    ])
}

fn used(used: &Use) -> Json {
    let access = match used.access {
        Access::Lock => "lock",
        Access::Exclusive => "exclusive",
        Access::Shared => "shared",
    };
    Json::Object(vec![("resource", used.resource.into()), ("access", access.into())])
}

fn nanos(duration: Option<Duration>) -> Json {
    duration.map(|duration| duration.as_ticks()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grid_on_external_clock_has_shortest_distance_and_no_offset() {
        const MS: Duration = Duration::from_millis(1);
        static TASKS: [Task; 1] = [Task::new("t", Kind::Periodic, "main", 1, None, 1, &[])
            .periodic(MS, MS, OnOverrun::Skip)
            .follows("PTP")];
        let text = text(&Model::new("app", &[], &TASKS, &[], None));
        for part in [r#""period_ns": 999000"#, r#""offset_ns": null"#, r#""clock": "PTP""#] {
            assert!(text.contains(part), "{text}");
        }
    }
}
