//! Entries of a task set, as they appear in a file.

use serde::Deserialize;

use crate::system::Link;
use crate::time::Time;

/// Name and version of the format.
pub(crate) const SCHEMA: &str = "punctual-taskset/1";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    #[serde(rename = "schema")]
    pub(crate) _schema: String,
    #[serde(default)]
    pub(crate) app: String,
    #[serde(default)]
    pub(crate) partition: Vec<PartitionEntry>,
    #[serde(default)]
    pub(crate) resource: Vec<ResourceEntry>,
    #[serde(default)]
    pub(crate) interrupt: Vec<InterruptEntry>,
    pub(crate) task: Vec<TaskEntry>,
    #[serde(default)]
    pub(crate) chain: Vec<ChainEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PartitionEntry {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) executor: ExecutorEntry,
    pub(crate) cpu: Option<u32>,
    pub(crate) cpus: Option<u64>,
    pub(crate) release: Option<Time>,
    pub(crate) dispatch: Option<Time>,
    pub(crate) lock: Option<Time>,
    pub(crate) preemption: Option<Time>,
    pub(crate) supply: Option<SupplyEntry>,
    #[serde(default)]
    pub(crate) idle_sections: Vec<SectionEntry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ExecutorEntry {
    #[default]
    Preemptive,
    Polling,
    Global,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SupplyEntry {
    pub(crate) budget: Option<Time>,
    pub(crate) period: Option<Time>,
    pub(crate) delay: Option<Time>,
    pub(crate) share: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResourceEntry {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) protocol: ProtocolEntry,
    pub(crate) group: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ProtocolEntry {
    #[default]
    Srp,
    Msrp,
    Pcp,
    None,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InterruptEntry {
    pub(crate) name: String,
    pub(crate) partition: Option<String>,
    pub(crate) execution: Time,
    pub(crate) period: Option<Time>,
    pub(crate) min_interval: Option<Time>,
    pub(crate) burst: Option<u64>,
    #[serde(default)]
    pub(crate) jitter: Time,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskEntry {
    pub(crate) name: String,
    pub(crate) partition: Option<String>,
    pub(crate) level: u32,
    pub(crate) execution: Time,
    pub(crate) period: Option<Time>,
    pub(crate) offset: Option<Time>,
    pub(crate) min_interval: Option<Time>,
    pub(crate) burst: Option<u64>,
    pub(crate) deadline: Option<Time>,
    #[serde(default)]
    pub(crate) jitter: Time,
    #[serde(default)]
    pub(crate) sections: Vec<SectionEntry>,
    #[serde(default)]
    pub(crate) spawns: Vec<SpawnEntry>,
    pub(crate) suspension: Option<SuspensionEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SectionEntry {
    pub(crate) resource: String,
    pub(crate) hold: Time,
    #[serde(default = "once")]
    pub(crate) times: u64,
    pub(crate) inside: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SpawnEntry {
    pub(crate) task: String,
    #[serde(default = "once")]
    pub(crate) most: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SuspensionEntry {
    pub(crate) total: Time,
    #[serde(default = "once")]
    pub(crate) times: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChainEntry {
    pub(crate) name: String,
    pub(crate) tasks: Vec<String>,
    #[serde(default)]
    pub(crate) link: Link,
    pub(crate) deadline: Option<Time>,
}

fn once() -> u64 {
    1
}
