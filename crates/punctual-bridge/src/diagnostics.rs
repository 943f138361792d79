//! The state of the app as a topic, in the form of `diagnostic_updater` of ROS: once per second, a
//! status for each task, one for the real-time settings, and one for the messages of the bridge.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use punctual::health::{self, Health, JobsHealth, TaskHealth};

use crate::Message;
use crate::message::{Byte, Description, Encoder, Field, Kind, Scalar, Value};
use crate::messages::{DiagnosticStatus, Header};
use crate::qos::Qos;
use crate::sink::Channel;

/// The name of the topic.
pub(crate) const TOPIC: &str = "/diagnostics";
/// The interval of `diagnostic_updater`.
const INTERVAL: Duration = Duration::from_secs(1);
/// The maximum number of tasks with a status.
const MAX_TASKS: usize = 32;
/// The maximum number of values of a status: one for each `Traffic` that a process can have.
const MAX_VALUES: usize = 32;
/// The maximum length of a text, in bytes.
const MAX_TEXT: usize = 200;

const OK: Byte = DiagnosticStatus::<1>::OK;
const WARN: Byte = DiagnosticStatus::<1>::WARN;

const KEY_VALUE: &Description = &Description::new(
    "diagnostic_msgs/msg/KeyValue",
    &[Field::new("key", None, Kind::Text(MAX_TEXT)), Field::new("value", None, Kind::Text(MAX_TEXT))],
);
const STATUS: &Description = &Description::new(
    "diagnostic_msgs/msg/DiagnosticStatus",
    &[
        Field::new("level", None, Kind::Scalar(Scalar::Byte)),
        Field::new("name", None, Kind::Text(MAX_TEXT)),
        Field::new("message", None, Kind::Text(MAX_TEXT)),
        Field::new("hardware_id", None, Kind::Text(MAX_TEXT)),
        Field::new("values", None, Kind::Sequence(&Kind::Message(KEY_VALUE), MAX_VALUES)),
    ],
)
.constants(DiagnosticStatus::<1>::DESCRIPTION.declared_constants());
const ARRAY: &Description = &Description::new(
    "diagnostic_msgs/msg/DiagnosticArray",
    &[
        Field::new("header", None, Header::<32>::KIND),
        Field::new("status", None, Kind::Sequence(&Kind::Message(STATUS), MAX_TASKS + 2)),
    ],
);

/// A `diagnostic_msgs/msg/DiagnosticStatus`.
#[derive(Debug, PartialEq)]
struct Status {
    level: Byte,
    name: String,
    message: String,
    values: Vec<(String, String)>,
}

/// The publisher of the topic, on the helper's thread.
pub(crate) struct Diagnostics {
    /// The name of the app, which precedes those of the statuses.
    app: String,
    machine: String,
    sequence: u32,
    published: Option<Instant>,
    /// The numbers of faults in the previous message, by the names of their statuses.
    faults: HashMap<String, u64>,
}

impl Diagnostics {
    pub(crate) fn new(app: &str) -> Self {
        let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Self {
            app: app.to_owned(),
            machine: machine.trim().to_owned(),
            sequence: 0,
            published: None,
            faults: HashMap::new(),
        }
    }

    pub(crate) const fn channel() -> Channel {
        Channel {
            topic: TOPIC,
            hz: Some(1),
            capacity: 2,
            qos: Qos::DEFAULT,
            description: ARRAY,
            is_input: false,
        }
    }

    /// Returns the sequence number and the bytes of the next message, if it is due and an app runs.
    pub(crate) fn next<'e>(&mut self, encoder: &'e mut Encoder, time_ns: u64) -> Option<(u32, &'e [u8])> {
        if self.published.is_some_and(|published| published.elapsed() < INTERVAL) {
            return None;
        }
        self.published = Some(Instant::now());
        let statuses = self.statuses(&health::current()?);
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        Some((sequence, encoder.encode_with(time_ns, |to| encode(&statuses, &self.machine, to))))
    }

    fn statuses(&mut self, health: &Health) -> Vec<Status> {
        let tasks = health.tasks.iter().take(MAX_TASKS).map(|task| self.task(task));
        let mut statuses: Vec<Status> = tasks.collect();
        statuses.push(self.settings(health));
        statuses.push(self.bridge(health));
        statuses
    }

    /// Returns the number of faults since the previous message.
    fn new_faults(&mut self, name: &str, faults: u64) -> u64 {
        let before = self.faults.insert(name.to_owned(), faults);
        faults.saturating_sub(before.unwrap_or(0))
    }

    fn status(&self, name: &str, (level, message): (Byte, String), values: Vec<(String, String)>) -> Status {
        Status { level, name: format!("{}: {name}", self.app), message, values }
    }

    fn task(&mut self, task: &TaskHealth) -> Status {
        let name = format!("task {}", task.name);
        let misses = self.new_faults(&format!("{name} misses"), task.jobs.map_or(0, |jobs| jobs.misses));
        let overruns = self.new_faults(&format!("{name} overruns"), task.overruns);
        let verdict = match (misses, overruns) {
            (0, 0) if task.jobs.is_none() => (OK, "no overruns; jobs are not measured".to_owned()),
            (0, 0) => (OK, "no misses and no overruns".to_owned()),
            _ => (WARN, format!("{misses} deadline misses and {overruns} overruns since the last message")),
        };
        let known = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
        let count = |of: fn(&JobsHealth) -> u64| known(task.jobs.as_ref().map(|jobs| of(jobs).to_string()));
        let micros = |of: fn(&JobsHealth) -> u64| {
            known(task.jobs.as_ref().map(|jobs| format!("{:.1}", of(jobs) as f64 / 1e3)))
        };
        let values = [
            ("jobs", count(|jobs| jobs.ended)),
            ("deadline misses", count(|jobs| jobs.misses)),
            ("overruns", task.overruns.to_string()),
            ("maximum release jitter (us)", micros(|jobs| jobs.jitter_max)),
            ("maximum response time (us)", micros(|jobs| jobs.response_max)),
        ];
        self.status(&name, verdict, values.map(|(key, value)| (key.to_owned(), value)).into())
    }

    fn settings(&self, health: &Health) -> Status {
        let verdict = match health.missing.len() {
            0 => (OK, "all real-time settings are granted".to_owned()),
            missing => (WARN, format!("{missing} real-time settings are missing")),
        };
        let values = health.missing.iter().take(MAX_VALUES).enumerate();
        let values = values.map(|(index, missing)| (format!("missing {}", index + 1), missing.clone()));
        self.status("real-time settings", verdict, values.collect())
    }

    fn bridge(&mut self, health: &Health) -> Status {
        let lost = health.traffic.iter().map(|traffic| traffic.lost).fold(0, u64::wrapping_add);
        let rejected = health.traffic.iter().map(|traffic| traffic.refused).fold(0, u64::wrapping_add);
        let (lost, rejected) = (self.new_faults("lost", lost), self.new_faults("rejected", rejected));
        let verdict = match (lost, rejected) {
            (0, 0) => (OK, "no messages lost or rejected".to_owned()),
            _ => (WARN, format!("{lost} messages lost and {rejected} rejected since the last message")),
        };
        let values = health.traffic.iter().take(MAX_VALUES).map(|traffic| {
            let counts =
                format!("{} messages, {} lost, {} rejected", traffic.carried, traffic.lost, traffic.refused);
            (traffic.name.clone(), counts)
        });
        self.status("bridge", verdict, values.collect())
    }
}

fn encode(statuses: &[Status], machine: &str, to: &mut Encoder) {
    let text = |to: &mut Encoder, text: &str| to.text(&text[..text.floor_char_boundary(MAX_TEXT)]);
    Header::<32>::EMPTY.encode(to);
    to.length(statuses.len());
    for Status { level, name, message, values } in statuses {
        level.encode(to);
        text(to, name);
        text(to, message);
        text(to, machine);
        to.length(values.len());
        for (key, value) in values {
            text(to, key);
            text(to, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual::health::TrafficHealth;

    use super::*;
    use crate::message::show;

    fn health(misses: u64, overruns: u64, lost: u64) -> Health {
        let mut jobs = JobsHealth::default();
        (jobs.ended, jobs.misses, jobs.jitter_max, jobs.response_max) = (100, misses, 1500, 20_000);
        let mut sample = TaskHealth::default();
        (sample.name, sample.overruns, sample.jobs) = ("sample", overruns, Some(jobs));
        let mut log = TaskHealth::default();
        log.name = "log";
        let mut angles = TrafficHealth::default();
        (angles.name, angles.carried, angles.lost) = ("/angles".into(), 1000, lost);
        let mut health = Health::default();
        (health.tasks, health.traffic) = (vec![sample, log], vec![angles]);
        health.missing = vec!["thread sample: SCHED_FIFO".into()];
        health
    }

    fn summary(statuses: &[Status]) -> Vec<(u8, &str, &str)> {
        statuses.iter().map(|status| (status.level.0, &*status.name, &*status.message)).collect()
    }

    #[test]
    fn warns_of_new_faults_only() {
        let mut diagnostics = Diagnostics::new("gimbal");
        let first = diagnostics.statuses(&health(2, 1, 3));
        let expected = [
            (1, "gimbal: task sample", "2 deadline misses and 1 overruns since the last message"),
            (0, "gimbal: task log", "no overruns; jobs are not measured"),
            (1, "gimbal: real-time settings", "1 real-time settings are missing"),
            (1, "gimbal: bridge", "3 messages lost and 0 rejected since the last message"),
        ];
        assert_eq!(summary(&first), expected);
        let second = diagnostics.statuses(&health(2, 1, 3));
        let levels: Vec<u8> = second.iter().map(|status| status.level.0).collect();
        assert_eq!(levels, [0, 0, 1, 0]);
        let third = diagnostics.statuses(&health(3, 1, 3));
        assert_eq!(third[0].message, "1 deadline misses and 0 overruns since the last message");
    }

    #[test]
    fn values_have_units_and_unknown_ones_are_marked() {
        let statuses = Diagnostics::new("gimbal").statuses(&health(2, 1, 3));
        let values = |index: usize| {
            let values = &statuses[index].values;
            values.iter().map(|(key, value)| (&**key, &**value)).collect::<Vec<_>>()
        };
        let sample = [
            ("jobs", "100"),
            ("deadline misses", "2"),
            ("overruns", "1"),
            ("maximum release jitter (us)", "1.5"),
            ("maximum response time (us)", "20.0"),
        ];
        assert_eq!(values(0), sample);
        assert_eq!(values(1)[0], ("jobs", "unknown"));
        assert_eq!(values(2), [("missing 1", "thread sample: SCHED_FIFO")]);
        assert_eq!(values(3), [("/angles", "1000 messages, 3 lost, 0 rejected")]);
    }

    #[test]
    fn bytes_are_those_of_the_described_message() {
        let mut diagnostics = Diagnostics::new("gimbal");
        diagnostics.machine = "ä".repeat(MAX_TEXT);
        let statuses = diagnostics.statuses(&health(0, 0, 0));
        let mut encoder = Encoder::default();
        let bytes = encoder.encode_with(7, |to| encode(&statuses[2..3], &diagnostics.machine, to));
        let shown = show(ARRAY, bytes).unwrap();
        let expected = format!(
            "{{header: {{stamp: {{sec: 0, nanosec: 7}}, frame_id: \"\"}}, status: [{{level: 1, \
             name: \"gimbal: real-time settings\", message: \"1 real-time settings are missing\", \
             hardware_id: \"{}\", values: [{{key: \"missing 1\", value: \"thread sample: SCHED_FIFO\"}}]}}]}}",
            "ä".repeat(MAX_TEXT / 2)
        );
        assert_eq!(shown, expected);
    }
}
