//! Chooses the contents of an app at random, within the rules of the attribute.

use clap::ValueEnum;
use punctual::model::OnOverrun;

use super::model::{Access, Executor, Hook, Idle, Kind, Manner, Model, Resource, Task};
use super::steps::Steps;
use crate::random::Random;

/// Returns the app for this seed.
pub fn choose(seed: u64, executor: Option<Executor>) -> Model {
    let mut random = Random::of(&[seed, 0xa99]);
    let any = *random.pick(Executor::value_variants());
    let executor = executor.unwrap_or(any);
    let polling = (executor == Executor::Poll).then(|| random.below(2) as usize);
    let mut model = Model {
        seed,
        executor,
        polling,
        monitored: !random.one_in(5),
        tasks: Vec::new(),
        resources: Vec::new(),
        unused: random.below(3) as usize,
        init_local: random.one_in(3),
        idle: None,
        hook: (!random.one_in(5)).then(|| Hook { points: random.one_in(2) }),
    };
    tasks(&mut model, &mut random);
    if !random.one_in(4) {
        let manner = match random.below(10) {
            0 => Manner::Stubborn,
            1..5 => Manner::Returns,
            _ => Manner::Waits,
        };
        let local = random.one_in(2);
        let hooked = local && model.hook.is_some() && random.one_in(2);
        model.idle = Some(Idle { manner, local, hooked, body: Vec::new() });
    }
    resources(&mut model, &mut random);
    for number in 0..model.tasks.len() {
        let bodies = 1 + random.below(3);
        model.tasks[number].bodies =
            (0..bodies).map(|_| Steps::of_task(&model, number, &mut random)).collect();
    }
    if model.idle.is_some() {
        let body = Steps::of_idle(&model, &mut random);
        model.idle.iter_mut().for_each(|idle| idle.body = body.clone());
    }
    model
}

fn tasks(model: &mut Model, random: &mut Random) {
    let levels = 1 + random.below(6) as u8;
    let spread = *random.pick(&[1, 1, 1, 4]);
    let parts = model.parts();
    // Every partition has a task.
    let count = random.below(8) as usize + parts;
    for number in 0..count {
        let part = if number < parts { number } else { random.below(parts as u64) as usize };
        let kind = match random.below(12) {
            0..5 => Kind::Message {
                arguments: 1 + usize::from(random.one_in(3)),
                capacity: 1 + random.scaled(2, 3) as u32,
            },
            5 | 6 => periodic(random),
            7 => Kind::Bound,
            8..11 => Kind::Async,
            // A local task needs a spawner, see below.
            _ => Kind::Local,
        };
        let level = (1 + random.below(levels.into()) as u8) * spread;
        model.tasks.push(Task {
            kind,
            level,
            part,
            local: random.one_in(3),
            in_place: random.one_in(4),
            hooked: model.hook.is_some() && random.one_in(2),
            execution: if random.one_in(2) { random.scaled(10, 4) } else { 0 },
            bodies: Vec::new(),
        });
    }
    for number in 0..count {
        let task = &model.tasks[number];
        let there = |other: &Task| (other.part, other.level) == (task.part, task.level);
        if task.kind == Kind::Local && !model.tasks.iter().any(|t| there(t) && t.kind != Kind::Local) {
            model.tasks[number].kind = Kind::Async;
        }
    }
    for number in 0..count {
        if let Kind::Periodic { on_overrun: OnOverrun::Skip, period, offset, capacity } =
            model.tasks[number].kind
            && random.one_in(2)
            && let Some(handler) = handler(model, random)
        {
            let on_overrun = OnOverrun::Task(format!("t{handler}").leak());
            model.tasks[number].kind = Kind::Periodic { on_overrun, period, offset, capacity };
        }
    }
}

fn periodic(random: &mut Random) -> Kind {
    let (on_overrun, capacity) = match random.below(8) {
        0..3 => (OnOverrun::Skip, 1),
        3..7 => (OnOverrun::Queue, 1 + random.below(4) as u32),
        _ => (OnOverrun::Stop, 1),
    };
    let period = 200 + random.scaled(200, 4);
    Kind::Periodic { period, offset: random.below(2) * random.scaled(100, 4), on_overrun, capacity }
}

/// Makes a message task the overrun handler of another task.
fn handler(model: &mut Model, random: &mut Random) -> Option<usize> {
    let fits = |task: &Task| matches!(task.kind, Kind::Message { .. } | Kind::Handler { .. });
    let all: Vec<usize> = (0..model.tasks.len()).filter(|&number| fits(&model.tasks[number])).collect();
    let chosen = (!all.is_empty()).then(|| *random.pick(&all))?;
    if let Kind::Message { capacity, .. } = model.tasks[chosen].kind {
        model.tasks[chosen].kind = Kind::Handler { capacity };
    }
    Some(chosen)
}

fn resources(model: &mut Model, random: &mut Random) {
    for _ in 0..random.below(6) {
        let access = match random.below(6) {
            0 => Access::LockFree,
            1 => Access::ByReference,
            _ => Access::Locked,
        };
        let hook = model.hook.is_some() && random.one_in(2);
        let all: Vec<usize> = (0..model.tasks.len()).collect();
        let users = match access {
            Access::LockFree => {
                let first = &model.tasks[*random.pick(&all)];
                let fits = |&task: &usize| {
                    let task = &model.tasks[task];
                    (task.part, task.level) == (first.part, first.level) && !task.kind.is_async()
                };
                let there: Vec<usize> = all.into_iter().filter(fits).collect();
                random.some(&there, 1)
            }
            _ => random.some(&all, 2),
        };
        let idle = model.idle.is_some() && access != Access::LockFree && random.one_in(4);
        model.resources.push(Resource { access, users, idle, hook });
    }
}
