//! The app whose requirements a machine is compared with.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::Deserialize;

use super::{Chosen, Scene};
use crate::cpus::Cpus;

/// The default kernel priority of level 0.
const USUAL_BASE: u8 = 50;

/// The declarations of an app, and observations of its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct App {
    /// Its name.
    pub name: String,
    /// The CPUs that its partitions name.
    pub cpus: Cpus,
    /// The number of partitions without a CPU.
    pub unplaced: usize,
    /// `true` if its threads may run on any CPU.
    pub is_global: bool,
    /// Its highest level.
    pub highest: u8,
    /// The tasks that wait for descriptors.
    pub bound: Vec<String>,
    /// The paths of its open devices. Empty if it was not run.
    pub devices: Vec<String>,
    /// Its process, if it runs.
    pub process: Option<u32>,
}

#[derive(Deserialize)]
struct Model {
    schema: String,
    app: String,
    partitions: Vec<Partition>,
    tasks: Vec<Task>,
}

#[derive(Deserialize)]
struct Partition {
    executor: String,
    cpu: Option<usize>,
}

#[derive(Deserialize)]
struct Task {
    name: String,
    kind: String,
    level: u8,
}

impl App {
    /// Reads the model that an app writes if `PUNCTUAL_MODEL` is set.
    ///
    /// # Errors
    /// Returns the problem with the model.
    pub fn of_model(json: &str) -> Result<Self, String> {
        let model: Model = serde_json::from_str(json).map_err(|error| error.to_string())?;
        if model.schema != "punctual-model/1" {
            return Err(format!(
                "its format is `{}`, not `punctual-model/1`: another version of Punctual",
                model.schema
            ));
        }
        let placed = model.partitions.iter().filter(|partition| partition.executor != "global");
        let bound = model.tasks.iter().filter(|task| task.kind == "bound");
        Ok(Self {
            name: super::finding::clean(&model.app),
            cpus: placed.clone().filter_map(|partition| partition.cpu).collect(),
            unplaced: placed.filter(|partition| partition.cpu.is_none()).count(),
            is_global: model.partitions.iter().any(|partition| partition.executor == "global"),
            highest: model.tasks.iter().map(|task| task.level).max().unwrap_or(0),
            bound: bound.map(|task| task.name.clone()).collect(),
            devices: Vec::new(),
            process: None,
        })
    }

    /// Describes a program that declares nothing: it may use the default CPU and priorities.
    #[must_use]
    pub fn program(name: &str) -> Self {
        Self {
            name: super::finding::clean(name),
            cpus: Cpus::default(),
            unplaced: 1,
            is_global: false,
            highest: 1,
            bound: Vec::new(),
            devices: Vec::new(),
            process: None,
        }
    }

    /// Returns the kernel priorities of its threads, from the running process or computed from its
    /// levels.
    fn band(&self) -> RangeInclusive<u8> {
        USUAL_BASE + 1..=USUAL_BASE.saturating_add(self.highest.max(1)).min(99)
    }
}

impl Scene<'_> {
    /// Compares the machine with the requirements of an app: on the CPUs that it names, or would
    /// use.
    ///
    /// # Errors
    /// The app names nonexistent CPUs.
    pub fn for_app(mut self, app: App) -> Result<Self, String> {
        let machine = self.machine;
        let online = &machine.topology.online;
        let mut cpus = app.cpus.clone();
        // The app's own choice: isolated ones first, then the highest.
        let isolated = machine.isolated().common(online);
        let free = isolated.iter().rev().chain(online.without(&isolated).iter().rev()).collect::<Vec<_>>();
        let taken = cpus.clone();
        cpus = cpus.and(&free.into_iter().filter(|&cpu| !taken.has(cpu)).take(app.unplaced).collect());
        if app.is_global {
            cpus = online.clone();
        }
        self.band = app.band();
        let seen = observed(&self, &app);
        if let Some((own, band)) = seen {
            (cpus, self.band) = (own, band);
        }
        self = self.on(cpus).map_err(|error| format!("{} requests unavailable CPUs: {error}", app.name))?;
        self.chosen = Chosen::App;
        self.app = Some(app);
        Ok(self)
    }
}

/// Returns the CPUs allowed to the app's real-time threads, and their priorities, if it runs and
/// has any.
fn observed(scene: &Scene, app: &App) -> Option<(Cpus, RangeInclusive<u8>)> {
    let process = app.process?;
    let threads = scene.machine.threads.iter().filter(|thread| thread.process == process);
    let mut seen: BTreeMap<u8, Cpus> = BTreeMap::new();
    for thread in threads {
        if let (Some(priority), Some(cpus)) = (thread.policy.priority(), &thread.cpus) {
            let known = seen.entry(priority).or_default();
            *known = known.and(cpus);
        }
    }
    let cpus = seen.values().fold(Cpus::default(), |all, cpus| all.and(cpus));
    Some((cpus, *seen.first_key_value()?.0..=*seen.last_key_value()?.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Machine;
    use crate::tree::Tree;

    const MODEL: &str = r#"{ "schema": "punctual-model/1", "app": "gimbal", "resources": [], "idle": null,
        "partitions": [ { "name": "a", "executor": "preemptive", "cpu": 1 }, { "name": "b", "executor": "polling", "cpu": null } ],
        "tasks": [ { "name": "edge", "kind": "bound", "level": 4 }, { "name": "log", "kind": "message", "level": 1 } ] }"#;

    #[test]
    fn selects_cpus_like_app() {
        let machine = Machine::read(Tree::parse("").with("/sys/devices/system/cpu/online", "0-3"));
        let app = App::of_model(MODEL).unwrap();
        assert_eq!((app.highest, app.bound.join(" ")), (4, "edge".into()));
        let scene = Scene::new(&machine).for_app(app.clone()).unwrap();
        assert_eq!((scene.cpus, scene.band, scene.chosen), (Cpus::from([1, 3]), 51..=54, Chosen::App));
        let error = Scene::new(&machine).for_app(App { cpus: Cpus::from([9]), ..app }).unwrap_err();
        assert!(error.contains("gimbal") && error.contains("CPU 9"), "{error}");
    }

    #[test]
    fn rejects_models_of_other_version() {
        let other = MODEL.replace("punctual-model/1", "punctual-model/2");
        assert!(App::of_model(&other).unwrap_err().contains("punctual-model/2"));
        assert!(App::of_model("{").is_err());
    }
}
