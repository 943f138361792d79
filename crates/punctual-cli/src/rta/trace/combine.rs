//! `punctual rta MODEL --profile --trace`: adds a recording to the declarations and measurements
//! of an app.

use std::collections::HashSet;
use std::path::Path;

use punctual_analysis::arrival::Stream;
use punctual_analysis::bound::Analysis;
use punctual_analysis::infer::long::{LongJobs, RARE, Run};
use punctual_analysis::infer::system::{Handler, displace, interrupts};
use punctual_analysis::infer::thread::Observation;
use punctual_analysis::measured::{NO_INTERRUPTS, SEEN_BY_JOBS, THE_REST};
use punctual_analysis::system::{Interrupt, System};
use punctual_analysis::time::{MAX_TIME, Nanos};
use punctual_report::format::{format_counted, format_part};
use punctual_trace::event::Tid;

use super::infer::contradiction;
use super::observe::Whose;
use super::read::{Recording, read};
use crate::output::message;
use crate::trace::args::Futex;

/// The longest jobs of the recording, by task of the system.
pub(in super::super) struct Recorded {
    slowest: Vec<Option<Observation>>,
}

/// Adds displacements of the app's jobs, and the lateness of their starts.
pub(in super::super) fn add(system: &mut System, path: &Path, futex: Futex) -> Result<Recorded, String> {
    let Recording { observer, names, length, head, .. } = read(path, true, futex)?;
    message!("{}", head.trim_end());
    let found = observer.threads(&names);
    let mut slowest = vec![None; system.tasks.len()];
    let mut cpus: Vec<Vec<u32>> = vec![Vec::new(); system.partitions.len()];
    for (partition, cpus) in system.partitions.iter().zip(&mut cpus) {
        cpus.extend(partition.cpu);
    }
    // The least urgent thread of each partition that ran one of its jobs.
    let mut lowest: Vec<Option<i64>> = vec![None; system.partitions.len()];
    let mut workers: HashSet<Tid> = HashSet::new();
    let mut missing = Vec::new();
    let mut jobs: Vec<Jobs<'_>> = vec![None; system.tasks.len()];
    for (at, slowest) in slowest.iter_mut().enumerate() {
        let task = &mut system.tasks[at];
        let is_it = |whose: &Whose, name: &str| matches!(whose, Whose::Task(_)) && name == task.name;
        let Some((whose, thread)) = found.iter().find(|(whose, thread)| is_it(whose, &thread.name)) else {
            missing.push(format!("`{}`", task.name));
            continue;
        };
        let of = &observer.threads[whose];
        workers.extend(&of.workers);
        jobs[at] = of.all_jobs().map(|runs| (runs, of.flawed));
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
    for partition in 0..system.partitions.len() {
        separate_long_jobs(system, partition, &jobs, length);
    }
    // Activity of workers between jobs is overhead, which the profile includes.
    let apps: HashSet<Tid> = workers.iter().filter_map(|&worker| names.process_of(worker)).collect();
    let is_app = |tid: Tid| {
        workers.contains(&tid) || names.process_of(tid).is_some_and(|process| apps.contains(&process))
    };
    let mut handlers = observer.handlers(&names);
    handlers.extend(observer.throttling(&names));
    for (partition, cpus) in cpus.iter().enumerate() {
        for handler in handlers.iter().filter(|handler| cpus.contains(&handler.cpu)) {
            let name = format!("{}, CPU {}", handler.name, handler.cpu);
            if handler.is_unknown {
                return Err(format!("{}: the duration of `{name}` is not in the recording", path.display()));
            }
            interrupts(system, partition, name, handler, length);
        }
        for (whose, thread) in &found {
            let is_other = matches!(*whose, Whose::Thread(tid, _) if !is_app(tid));
            let is_here = thread.cpus.iter().any(|cpu| cpus.contains(cpu));
            // A thread below all workers displaces none of them.
            if is_other && is_here && lowest[partition].is_none_or(|lowest| thread.urgency >= lowest) {
                displace(system, partition, thread, length).map_err(|why| {
                    format!("{}: `{}` displaces the app, and {why}", path.display(), thread.name)
                })?;
            }
        }
    }
    system.assumptions.extend(observer.assumption());
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

/// All jobs of a task, and the number excluded from the recording's figures; `None` if there are
/// too many.
type Jobs<'a> = Option<(&'a [Run], u64)>;

/// Models the excess time of a few jobs, of any task of a partition, as a separate source.
fn separate_long_jobs(system: &mut System, partition: usize, jobs: &[Jobs<'_>], length: Nanos) {
    let of_task = |at: usize| (system.tasks[at].partition == partition).then_some((at, jobs[at]?));
    let known: Vec<(usize, (&[Run], u64))> = (0..system.tasks.len()).filter_map(of_task).collect();
    let runs: Vec<&[Run]> = known.iter().map(|&(_, (runs, _))| runs).collect();
    let LongJobs { usual, curves, executions } = LongJobs::of(&runs);
    let Some(longest) = executions.max() else { return };
    let mut differing = Vec::new();
    for (&(at, (runs, flawed)), usual) in known.iter().zip(usual) {
        let task = &mut system.tasks[at];
        let Some(usual) = usual.filter(|&usual| usual < task.execution) else { continue };
        let measured = std::mem::replace(&mut task.execution, usual);
        differing.push(format!("{} (`{}`)", format_part(usual), task.name));
        let recorded = runs.iter().filter_map(|run| run.execution).max();
        if flawed > 0 && recorded.is_some_and(|recorded| recorded < measured) {
            // It may have been the time of a job that is incomplete in the recording.
            system.interrupts.push(Interrupt {
                name: format!("the longest job of {}", task.name),
                partition,
                execution: measured - usual,
                arrivals: Stream::sporadic(length.clamp(1, MAX_TIME)),
            });
        }
        if flawed > 0 {
            system.assumptions.push(format!(
                "Of `{}` {} {} not whole in the recording: none is taken to have been longer than the longest that the profile has.",
                task.name,
                format_counted(flawed, "job"),
                if flawed == 1 { "is" } else { "are" }
            ));
        }
    }
    if differing.is_empty() {
        return;
    }
    let times = curves.releases();
    let name = match system.partitions[partition].name.as_str() {
        "" => "long jobs".to_owned(),
        of => format!("long jobs of {of}"),
    };
    let cpu = system.partitions[partition].cpu.unwrap_or(0);
    system.assumptions.push(format!(
        "C is the longest time of all jobs but one in {RARE}: {}. The excess of {}, up to {}, is the source `{name}`, which occurs as \
         often as these jobs. The kernel saw nothing else on the CPU then: the job itself took longer, or the host of a virtual machine \
         took the CPU.",
        differing.join(", "),
        format_counted(times, "longer job"),
        format_part(longest)
    ));
    let handler = Handler { name: name.clone(), cpu, curves, executions, is_unknown: false };
    interrupts(system, partition, name, &handler, length);
}

impl Recorded {
    /// Lists the jobs that took longer than their bound, and the terms that they exceed.
    pub(in super::super) fn contradictions(&self, system: &System, analysis: &Analysis) -> Vec<String> {
        let tasks = system.tasks.iter().zip(&analysis.tasks).zip(&self.slowest);
        let found = tasks.filter_map(|((task, outcome), slowest)| {
            contradiction(&task.name, slowest.as_ref()?, outcome.as_ref().ok()?, |_| false)
        });
        found.collect()
    }
}

#[cfg(test)]
mod tests {
    use punctual_analysis::schema;

    use super::*;

    fn runs(long: &[(usize, u64)]) -> Vec<Run> {
        let mut runs: Vec<Run> =
            (0..1_500).map(|at| Run { start: at * 1_000_000, execution: Some(20_000) }).collect();
        long.iter().for_each(|&(at, execution)| runs[at].execution = Some(execution));
        runs
    }

    fn two() -> System {
        let text = "schema = \"punctual-taskset/1\"\n\
                    [[task]]\nname = \"a\"\nlevel = 2\nexecution = \"3ms\"\nperiod = \"1ms\"\n\
                    [[task]]\nname = \"b\"\nlevel = 1\nexecution = \"15us\"\nperiod = \"1ms\"\n";
        schema::read("m.toml", text).unwrap()
    }

    #[test]
    fn long_jobs_are_a_separate_source() {
        let mut system = two();
        let (a, b) = (runs(&[(100, 3_000_000), (900, 520_000)]), runs(&[]));
        separate_long_jobs(&mut system, 0, &[Some((&a, 0)), Some((&b, 0))], 1_500_000_000);
        // The measurement of `b` is less than the recorded value.
        assert_eq!(system.tasks.iter().map(|task| task.execution).collect::<Vec<_>>(), [20_000, 15_000]);
        // Each takes at most 500 µs more, and one in two as much again as the longest.
        let [longest, long] = &system.interrupts[..] else { panic!("{:?}", system.interrupts.len()) };
        assert_eq!((longest.name.as_str(), long.name.as_str()), ("long jobs, long", "long jobs"));
        assert_eq!(longest.execution + long.execution, 2_980_000);
        assert_eq!((long.execution, long.arrivals.distance(2)), (500_000, Some(800_000_000)));
        let [printed] = &system.assumptions[..] else { panic!("{:?}", system.assumptions) };
        assert!(printed.contains("20 µs (`a`)") && printed.contains("2 longer jobs"), "{printed}");
    }

    #[test]
    fn incomplete_job_may_be_longest() {
        let mut system = two();
        let (a, b) = (runs(&[(100, 520_000)]), runs(&[]));
        separate_long_jobs(&mut system, 0, &[Some((&a, 1)), Some((&b, 0))], 1_500_000_000);
        let of = |at: usize| (system.interrupts[at].name.as_str(), system.interrupts[at].execution);
        assert_eq!(of(0), ("the longest job of a", 2_980_000));
        assert_eq!((system.interrupts.len(), of(1).1), (2, 500_000));
        assert!(system.assumptions[0].starts_with("Of `a` 1 job is not whole"), "{:?}", system.assumptions);
    }
}
