//! Chooses the steps of bodies.

use super::model::{Access, Kind, Model, Step, Wait};
use crate::random::Random;

/// Maximum nesting depth of steps.
const DEPTH: u32 = 3;

/// Generator of the steps of one body.
pub(super) struct Steps<'a> {
    model: &'a Model,
    random: &'a mut Random,
    /// Resources that are available here.
    free: Vec<usize>,
    local: bool,
    in_place: bool,
    spawns: Vec<usize>,
}

impl<'a> Steps<'a> {
    /// Returns the steps of a job of this task.
    pub(super) fn of_task(model: &'a Model, number: usize, random: &'a mut Random) -> Vec<Step> {
        let task = &model.tasks[number];
        let used = |resource: &usize| model.resources[*resource].users.contains(&number);
        let mut steps = Self {
            model,
            random,
            free: (0..model.resources.len()).filter(used).collect(),
            local: task.local && task.kind != Kind::Bound,
            in_place: task.in_place,
            spawns: model.local_tasks(task.part, task.level),
        };
        if task.kind.is_async() { steps.waiting() } else { steps.some(0) }
    }

    /// Returns the steps of one iteration of `idle`.
    pub(super) fn of_idle(model: &'a Model, random: &'a mut Random) -> Vec<Step> {
        let used = |resource: &usize| model.resources[*resource].idle;
        let free = (0..model.resources.len()).filter(used).collect();
        // It locks again in the next iteration, so it must not pass resources by value.
        let mut steps = Self { model, random, free, local: false, in_place: false, spawns: Vec::new() };
        steps.some(1)
    }

    fn some(&mut self, depth: u32) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            steps.push(Step::Point);
            steps.extend(self.one(depth));
        }
        if self.random.one_in(2) {
            steps.push(Step::Point);
        }
        steps
    }

    fn one(&mut self, depth: u32) -> Option<Step> {
        let last = depth >= DEPTH;
        match self.random.below(8) {
            0 if !last && std::mem::take(&mut self.local) => {
                let within = self.some(depth + 1);
                self.local = true;
                Some(Step::Local(within))
            }
            1 if !last && std::mem::take(&mut self.in_place) => {
                let within = self.some(depth + 1);
                self.in_place = true;
                Some(Step::InPlace(within))
            }
            2 if !last => Some(Step::Keep(self.some(depth + 1))),
            3 if !self.spawns.is_empty() => Some(Step::SpawnLocal(*self.random.pick(&self.spawns))),
            4..8 if !last && !self.free.is_empty() => Some(self.with_resource(depth)),
            _ => None,
        }
    }

    fn with_resource(&mut self, depth: u32) -> Step {
        let chosen = *self.random.pick(&self.free);
        match self.model.resources[chosen].access {
            Access::ByReference => return Step::Inspect(chosen),
            Access::LockFree => {
                self.free.retain(|&resource| resource != chosen);
                let within = self.some(depth + 1);
                self.free.push(chosen);
                return Step::Use(chosen, within);
            }
            Access::Locked => {}
        }
        let mut all: Vec<usize> = self.free.clone();
        all.retain(|&other| other != chosen && self.model.resources[other].access == Access::Locked);
        let several = depth == 0 && !all.is_empty() && self.random.one_in(2);
        let mut together = vec![chosen];
        if several {
            self.random.shuffle(&mut all);
            all.truncate(1 + self.random.below(3) as usize);
            together.extend(all);
        }
        self.free.retain(|resource| !together.contains(resource));
        let within = self.some(depth + 1);
        if !several {
            self.free.push(chosen);
        }
        Step::Lock(together, within)
    }

    /// Returns the steps of an async task.
    fn waiting(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            // Rights that one part passes by value are unavailable in the next.
            steps.push(Step::Keep(self.some(1)));
            let wait = match self.random.below(14) {
                0..4 => Wait::Delay,
                4 | 5 => Wait::Parked,
                6..9 => Wait::Timeout,
                9 | 10 => Wait::Yield,
                11 | 12 => Wait::Readable,
                _ => Wait::Never,
            };
            steps.push(Step::Wait(wait, self.random.one_in(2)));
        }
        steps.push(Step::Keep(self.some(1)));
        steps
    }
}
