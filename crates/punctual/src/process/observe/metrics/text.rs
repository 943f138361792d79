//! Constant data of a run, as JSON.

use super::{Cpus, tasks};
use crate::model::Kind;
use crate::observe::json::Json;
use crate::report::{Settings, ThreadSettings};
use crate::state::runtime::{Runtime, TaskInfo};

/// Returns the text on an app with these `settings`, whose partitions run on these CPUs.
pub(super) fn of(runtime: &'static Runtime, settings: &Settings, cpus: Cpus<'_>) -> String {
    let program = std::env::current_exe().ok();
    let program = program.as_ref().and_then(|path| path.file_name()).map(|name| name.to_string_lossy());
    let partitions = runtime.partitions.iter().zip(cpus);
    let partitions = partitions.map(|(partition, cpu)| {
        Json::Object(vec![("name", partition.name.into()), ("cpu", cpu.map(|cpu| cpu as u64).into())])
    });
    let value = Json::Object(vec![
        ("app", runtime.name.into()),
        ("program", program.as_deref().into()),
        ("punctual", env!("CARGO_PKG_VERSION").into()),
        ("partitions", partitions.collect()),
        ("tasks", tasks(runtime).map(|(_, info)| task(runtime, &info)).collect()),
        ("kernel", settings.kernel.as_str().into()),
        ("memory", settings.memory.as_str().into()),
        ("threads", settings.threads.iter().map(thread).collect()),
        ("missing", settings.all_missing().iter().map(|what| what.as_str().into()).collect()),
        ("notes", settings.notes.iter().map(|note| note.as_str().into()).collect()),
    ]);
    value.to_string()
}

fn task(runtime: &Runtime, info: &TaskInfo) -> Json {
    let declared = runtime.host.model.tasks.iter().find(|task| task.name == info.name);
    let kind = declared.map(|task| match task.kind {
        Kind::Periodic => "periodic",
        Kind::Message => "message",
        Kind::Bound => "bound",
        Kind::Async => "async",
    });
    let period = declared.and_then(|task| task.period).map(|period| period.as_ticks());
    let deadline = declared.and_then(|task| task.deadline).map(|deadline| deadline.as_ticks());
    // SAFETY: the cells change before and after this text is made, on this thread.
    let measured = unsafe { info.cells.figures.get() }.is_some();
    Json::Object(vec![
        ("name", info.name.into()),
        ("partition", info.partition.name.into()),
        ("level", u64::from(info.level).into()),
        ("kind", kind.into()),
        ("period", period.into()),
        ("deadline", deadline.into()),
        ("measured", u64::from(measured).into()),
    ])
}

fn thread(thread: &ThreadSettings) -> Json {
    Json::Object(vec![
        ("name", thread.thread.as_str().into()),
        ("thread", u64::from(thread.kernel_thread).into()),
        ("policy", thread.policy.as_str().into()),
        ("priority", (thread.priority.max(0) as u64).into()),
        ("cpus", thread.cpus.as_str().into()),
    ])
}
