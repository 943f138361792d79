//! Converts the records of a run into the summary for its report.

use std::time::SystemTime;

use punctual::report::{Report, Settings, Summary, TaskReport};

use crate::client::LinkCounters;
use crate::log::Recorder;
use crate::report::{
    Clock, Condition, Distribution, FORMAT_VERSION, Meta, Outcome, RunSummary, SettingRow, StepResponse,
    TaskRow,
};

/// All inputs of a run's report.
#[derive(Debug)]
pub struct Run<'a> {
    /// The executor's report.
    pub report: &'a Report,
    /// The motion.
    pub record: &'a Recorder,
    /// The traffic on the bus.
    pub link: LinkCounters,
    /// The same run in virtual time.
    pub reference: Option<&'a Recorder>,
    /// The source of the setpoints.
    pub setpoints: &'a str,
    /// The start time of the run.
    pub started: SystemTime,
}

/// Returns the summary of a run.
pub fn of(run: &Run<'_>) -> RunSummary {
    let report = run.report;
    let clock = if report.virtual_time { Clock::Virtual } else { Clock::Real };
    let condition = |name: &str, value: &str| Condition { name: name.into(), value: value.into() };
    let mut conditions =
        vec![condition("Setpoints", run.setpoints), condition("Ended", &report.outcome.to_string())];
    if clock == Clock::Real {
        conditions.push(condition("Kernel", &report.settings.kernel));
        conditions.extend(report.settings.notes.iter().map(|note| condition("Note", note)));
    }
    RunSummary {
        version: FORMAT_VERSION,
        meta: Meta {
            title: "Gimbal".into(),
            started: humantime::format_rfc3339_seconds(run.started).to_string(),
            clock,
            length_ns: report.elapsed.as_nanos() as u64,
            conditions,
        },
        tasks: report.tasks.iter().map(task).collect(),
        settings: if clock == Clock::Real { settings(&report.settings) } else { Vec::new() },
        link: run.link,
        step: StepResponse::from_records(run.record, run.reference),
    }
}

fn task(task: &TaskReport) -> TaskRow {
    TaskRow {
        name: task.name.into(),
        level: task.level.into(),
        jobs: task.jobs,
        overruns: task.overruns,
        misses: task.misses,
        suspensions: task.suspended,
        jitter: distribution(&task.jitter),
        response: distribution(&task.response),
        execution: distribution(&task.execution),
    }
}

fn distribution(summary: &Summary) -> Distribution {
    Distribution {
        max_ns: summary.max,
        p999_ns: summary.p999.unwrap_or_default(),
        p50_ns: summary.p50.unwrap_or_default(),
        mean_ns: summary.mean.round() as u64,
        buckets: summary.buckets.clone(),
    }
}

fn settings(settings: &Settings) -> Vec<SettingRow> {
    let row = |name: String, wanted: &str, effective: String, missing: &[String]| SettingRow {
        name,
        wanted: wanted.into(),
        effective,
        outcome: if missing.is_empty() { Outcome::Applied } else { Outcome::Refused },
        note: missing.join("; "),
    };
    let memory = row("memory".into(), "all locked", settings.memory.clone(), &settings.missing);
    let threads = settings.threads.iter().map(|thread| {
        let effective = format!("{} {} on CPU {}", thread.policy, thread.priority, thread.cpus);
        let wanted = if thread.thread == "idle" { "ordinary, one CPU" } else { "SCHED_FIFO, one CPU" };
        row(thread.thread.clone(), wanted, effective, &thread.missing)
    });
    std::iter::once(memory).chain(threads).collect()
}
