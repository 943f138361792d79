//! Entries of the declared model and of the profile, as an app writes them.

use serde::Deserialize;

use crate::schema::file::{ExecutorEntry, ProtocolEntry};
use crate::system::{Nesting, Profiling};
use crate::time::{MAX_TIME, Nanos};

pub(super) const MODEL: &str = "punctual-model/1";
/// Supported versions, newest first. Version 2 adds the cost of profiling, version 3 spawns by
/// other callers than jobs, version 4 spawns inside sections, the number of spawns per job, and
/// stolen time, version 5 sections inside sections.
pub(super) const PROFILES: [&str; 5] = [
    "punctual-profile/5",
    "punctual-profile/4",
    "punctual-profile/3",
    "punctual-profile/2",
    "punctual-profile/1",
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Model {
    #[serde(rename = "schema")]
    pub(super) _schema: String,
    pub(super) app: String,
    pub(super) partitions: Vec<ModelPartition>,
    pub(super) tasks: Vec<ModelTask>,
    pub(super) resources: Vec<ModelResource>,
    pub(super) idle: Option<ModelIdle>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelPartition {
    pub(super) name: String,
    pub(super) executor: ExecutorEntry,
    pub(super) cpu: Option<u32>,
}

/// A declared task. Further keys do not affect the analysis; one that does changes the version of
/// the schema.
#[derive(Debug, Deserialize)]
pub(super) struct ModelTask {
    pub(super) name: String,
    pub(super) partition: String,
    pub(super) level: u32,
    pub(super) period_ns: Option<Nanos>,
    pub(super) offset_ns: Option<Nanos>,
    pub(super) deadline_ns: Option<Nanos>,
    pub(super) min_interval_ns: Option<Nanos>,
    pub(super) burst: Option<u64>,
    pub(super) uses: Vec<ModelUse>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelUse {
    pub(super) resource: String,
    pub(super) access: Access,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Access {
    Lock,
    Exclusive,
    Shared,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelResource {
    pub(super) name: String,
    #[serde(rename = "ceiling")]
    pub(super) _ceiling: u32,
    pub(super) protocol: ProtocolEntry,
    pub(super) group: Option<usize>,
    #[serde(rename = "partitions")]
    pub(super) _partitions: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelIdle {
    pub(super) partition: Option<String>,
    pub(super) uses: Vec<ModelUse>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Profile {
    #[serde(rename = "schema")]
    pub(super) _schema: String,
    pub(super) app: String,
    pub(super) duration_ns: Option<Nanos>,
    pub(super) clock: Option<String>,
    #[serde(rename = "machine")]
    pub(super) _machine: Option<serde_json::Value>,
    pub(super) tasks: Vec<ProfileTask>,
    pub(super) partitions: Vec<ProfilePartition>,
    #[serde(default)]
    pub(super) interrupts: Vec<ProfileInterrupt>,
    pub(super) idle: Option<ProfileIdle>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileTask {
    pub(super) name: String,
    pub(super) jobs: Option<u64>,
    pub(super) execution_max_ns: Option<Nanos>,
    #[serde(rename = "execution_min_ns")]
    pub(super) _execution_min_ns: Option<Nanos>,
    pub(super) response_max_ns: Option<Nanos>,
    /// From the release to the start.
    pub(super) jitter_max_ns: Option<Nanos>,
    /// The part of it that no job and no critical section of the partition took.
    pub(super) lateness_max_ns: Option<Nanos>,
    pub(super) lateness_min_ns: Option<Nanos>,
    pub(super) deadline_misses: Option<u64>,
    #[serde(rename = "overruns")]
    pub(super) _overruns: Option<u64>,
    #[serde(default)]
    pub(super) inter_arrival: Vec<Distance>,
    /// Measured only if the app sets `profile`.
    pub(super) spawns: Option<Vec<ProfileSpawn>>,
    /// Number of spawns by a foreign thread, `init`, `idle` or the clock.
    pub(super) spawned_by_no_job: Option<u64>,
    /// Largest number of spawns of one job.
    pub(super) spawns_most_per_job: Option<u64>,
    pub(super) holds: Option<Vec<Hold>>,
    /// Longest execution time without the part that the rest of the machine took, and the largest
    /// such part.
    pub(super) cpu_max_ns: Option<Nanos>,
    pub(super) outside_max_ns: Option<Nanos>,
    pub(super) suspension_max_ns: Option<Nanos>,
    pub(super) suspensions_most_per_job: Option<u64>,
}

impl ProfileTask {
    /// Returns J. Where it was not measured separately, as under the global executor, J of a task
    /// released by the clock is at most the time to its start.
    pub(super) fn lateness(&self, is_periodic: bool) -> Nanos {
        self.lateness_max_ns.or(self.jitter_max_ns.filter(|_| is_periodic)).unwrap_or(0)
    }

    /// Returns C without the time that the rest of the machine took, if known.
    pub(super) fn execution(&self) -> Option<Nanos> {
        self.outside().and(self.cpu_max_ns).or(self.execution_max_ns)
    }

    /// Returns the largest time that the rest of the machine took from a job.
    pub(super) fn outside(&self) -> Option<Nanos> {
        self.outside_max_ns.filter(|_| self.cpu_max_ns.is_some())
    }

    pub(super) fn spawns(&self) -> &[ProfileSpawn] {
        self.spawns.as_deref().unwrap_or_default()
    }

    pub(super) fn holds(&self) -> &[Hold] {
        self.holds.as_deref().unwrap_or_default()
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Distance {
    pub(super) releases: u64,
    pub(super) least_ns: Option<Nanos>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileSpawn {
    pub(super) task: String,
    pub(super) most_per_job: u64,
    /// Least execution time of a job before the spawn.
    pub(super) earliest_ns: Option<Nanos>,
    /// True if a job held a resource at the spawn.
    pub(super) in_section: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hold {
    pub(super) resource: String,
    pub(super) longest_ns: Option<Nanos>,
    pub(super) most_per_job: Option<u64>,
    /// True if a job held another resource at the request.
    pub(super) nested: Option<bool>,
}

impl Hold {
    /// Returns the sections that enclose it, as far as it was measured.
    pub(super) fn nesting(&self) -> Nesting {
        if self.nested == Some(false) { Nesting::Outermost } else { Nesting::Unknown }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfilePartition {
    pub(super) name: String,
    pub(super) cpu: Option<u32>,
    pub(super) release_ns: Option<Nanos>,
    pub(super) dispatch_ns: Option<Nanos>,
    pub(super) lock_ns: Option<Nanos>,
    pub(super) preemption_ns: Option<Nanos>,
    /// Cost of profiling per job, the part of it before the end of the job, and per critical
    /// section.
    pub(super) profiling_ns: Option<Nanos>,
    pub(super) profiling_before_ns: Option<Nanos>,
    pub(super) profiling_lock_ns: Option<Nanos>,
    /// CPU time that the host of a virtual machine took during the run.
    pub(super) stolen_ns: Option<Nanos>,
}

impl ProfilePartition {
    pub(super) fn profiling(&self) -> Profiling {
        let known = |value: Option<Nanos>| value.unwrap_or(0).min(MAX_TIME);
        let job = known(self.profiling_ns);
        // Cost of unknown position may precede the end.
        let before_end = self.profiling_before_ns.unwrap_or(job).min(job);
        Profiling { job, before_end, lock: known(self.profiling_lock_ns) }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileInterrupt {
    pub(super) name: String,
    pub(super) partition: String,
    pub(super) execution_max_ns: Nanos,
    #[serde(default)]
    pub(super) inter_arrival: Vec<Distance>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileIdle {
    #[serde(default)]
    pub(super) holds: Vec<Hold>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documented_files_have_newest_versions() {
        for (name, version) in [("gimbal-model.json", MODEL), ("gimbal-profile.json", PROFILES[0])] {
            let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(path).unwrap();
            assert!(text.contains(&format!("\"schema\": \"{version}\"")), "{name} is not {version}");
        }
    }
}
