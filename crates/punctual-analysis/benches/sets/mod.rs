//! Random task sets.

use punctual_analysis::system::System;

#[path = "../../tests/support/mod.rs"]
pub(crate) mod support;

use support::{Random, resource, section, system, task};

/// Generates task sets with three resources; nearly all of them meet their deadlines.
pub(crate) fn random_system(random: &mut Random, count: usize, total: f64) -> System {
    let shares = random.utilizations(count, total);
    let mut tasks: Vec<_> = shares
        .iter()
        .enumerate()
        .map(|(at, share)| {
            let period = random.log_uniform(1_000_000, 1_000_000_000);
            let execution = ((period as f64 * share) as u64).max(1);
            let mut task = task(&format!("t{at}"), 1, period, execution);
            task.sections.push(section(at % 3, execution.min(10_000)));
            task
        })
        .collect();
    tasks.sort_by_key(|task| std::cmp::Reverse(task.deadline));
    for (at, task) in tasks.iter_mut().enumerate() {
        task.level = at as u32 + 1;
    }
    let mut system = System { resources: vec![resource("r"), resource("s"), resource("t")], ..system(tasks) };
    system.update_ceilings();
    system
}
