//! `punctual rta --trace --model --profile`: what the recording adds to what an app declares and has measured.

use std::collections::HashSet;
use std::path::Path;

use punctual_analysis::bound::Analysis;
use punctual_analysis::infer::system::{displace, interrupts};
use punctual_analysis::infer::thread::Observation;
use punctual_analysis::measured::{NO_INTERRUPTS, SEEN_BY_JOBS, THE_REST};
use punctual_analysis::system::System;
use punctual_trace::event::Tid;

use super::infer::contradiction;
use super::observe::Whose;
use super::read::{Recording, read};
use crate::output::say;

/// The longest jobs of the recording, by task of the system.
pub(in super::super) struct Recorded {
    slowest: Vec<Option<Observation>>,
}

/// Adds what displaced the app's jobs, and how late the kernel let them start.
pub(in super::super) fn add(system: &mut System, path: &Path) -> Result<Recorded, String> {
    let Recording { observer, names, length, head, .. } = read(path, false)?;
    say!("{}", head.trim_end());
    let found = observer.threads(&names);
    let mut slowest = vec![None; system.tasks.len()];
    let mut cpus: Vec<Vec<u32>> = vec![Vec::new(); system.partitions.len()];
    for (partition, cpus) in system.partitions.iter().zip(&mut cpus) {
        cpus.extend(partition.cpu);
    }
    // The least urgent thread of each partition that ran a job of it.
    let mut lowest: Vec<Option<i64>> = vec![None; system.partitions.len()];
    let mut workers: HashSet<Tid> = HashSet::new();
    let mut missing = Vec::new();
    for (at, slowest) in slowest.iter_mut().enumerate() {
        let task = &mut system.tasks[at];
        let is_it = |whose: &Whose, name: &str| matches!(whose, Whose::Task(_)) && name == task.name;
        let Some((whose, thread)) = found.iter().find(|(whose, thread)| is_it(whose, &thread.name)) else {
            missing.push(format!("`{}`", task.name));
            continue;
        };
        workers.extend(&observer.threads[whose].workers);
        let seen = thread.seen();
        *slowest = seen.slowest;
        let response = seen.slowest.and_then(|job| job.response());
        task.observed.response = task.observed.response.max(response);
        task.jitter = task.jitter.max(seen.lateness.ns);
        let urgency = &mut lowest[task.partition];
        *urgency = Some(urgency.map_or(thread.urgency, |lowest| lowest.min(thread.urgency)));
        for &cpu in &thread.cpus {
            if !cpus[task.partition].contains(&cpu) {
                cpus[task.partition].push(cpu);
            }
        }
    }
    if missing.len() == system.tasks.len() {
        return Err(format!(
            "{} has no job of this app: record it with its marks, by punctual trace record -- ./my-app",
            path.display()
        ));
    }
    if !missing.is_empty() {
        let names = missing.join(", ");
        system
            .assumptions
            .push(format!("The recording has no job of {names}: their J is that of the profile."));
    }
    // What workers do between jobs is overhead, which the profile has.
    let apps: HashSet<Tid> = workers.iter().filter_map(|&worker| names.process_of(worker)).collect();
    let is_app = |tid: Tid| {
        workers.contains(&tid) || names.process_of(tid).is_some_and(|process| apps.contains(&process))
    };
    let handlers = observer.handlers(&names);
    for (partition, cpus) in cpus.iter().enumerate() {
        for handler in handlers.iter().filter(|handler| cpus.contains(&handler.cpu)) {
            let name = format!("{}, CPU {}", handler.name, handler.cpu);
            if handler.is_unknown {
                return Err(format!("{}: how long `{name}` takes is not in the recording", path.display()));
            }
            interrupts(system, partition, name, handler, length);
        }
        for (whose, thread) in &found {
            let is_other = matches!(*whose, Whose::Thread(tid, _) if !is_app(tid));
            let is_here = thread.cpus.iter().any(|cpu| cpus.contains(cpu));
            // Below all workers it displaces nobody.
            if is_other && is_here && lowest[partition].is_none_or(|lowest| thread.urgency >= lowest) {
                displace(system, partition, thread, length).map_err(|why| {
                    format!("{}: `{}` displaces the app, and {why}", path.display(), thread.name)
                })?;
            }
        }
    }
    if handlers.is_empty() {
        return Err(format!(
            "{} has no interrupts: record it again with the events irq, irq_vectors and softirq",
            path.display()
        ));
    }
    system.assumptions.retain(|assumption| assumption != NO_INTERRUPTS && assumption != SEEN_BY_JOBS);
    system.interrupts.retain(|interrupt| interrupt.name != THE_REST);
    Ok(Recorded { slowest })
}

impl Recorded {
    /// The jobs that took longer than their bound, and the terms that they exceed.
    pub(in super::super) fn contradictions(&self, system: &System, analysis: &Analysis) -> Vec<String> {
        let tasks = system.tasks.iter().zip(&analysis.tasks).zip(&self.slowest);
        let found = tasks.filter_map(|((task, outcome), slowest)| {
            contradiction(&task.name, slowest.as_ref()?, outcome.as_ref().ok()?, |_| false)
        });
        found.collect()
    }
}
