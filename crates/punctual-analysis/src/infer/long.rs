//! Jobs that now and then take far longer than usual, whoever they are: what the rest of the machine takes of a CPU unseen.
//!
//! A host that takes the CPU of a virtual machine takes it from whatever job there is, and the kernel, which sees no more than a long
//! job, counts it as that job's own time. If this is C of every task it came to, every job is taken for as long, and there is soon
//! no bound. Here C is what all but a few jobs take, and what those take more is one source above all tasks of the partition, with its
//! own longest execution and its own least distances ([`Curves`], [`Executions`]). Every job that was seen takes no longer than both.

use super::curves::Curves;
use super::executions::Executions;
use super::thread::{JOBS, RELEASES};
use crate::time::Nanos;

/// One of so many jobs of a task may be long.
pub const RARE: usize = 512;

/// A job, or a place where jobs are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// When it started.
    pub start: Nanos,
    /// C; `None` if it is not known.
    pub execution: Option<Nanos>,
}

/// What jobs of several tasks of a partition take.
#[derive(Debug, Clone)]
pub struct LongJobs {
    /// By task: what its jobs usually take; `None` if none is known.
    pub usual: Vec<Option<Nanos>>,
    /// When the long ones of any task started.
    pub curves: Curves,
    /// What they took more than the usual.
    pub executions: Executions,
}

impl LongJobs {
    /// Of jobs by task, those of each in their order.
    #[must_use]
    pub fn of(tasks: &[&[Run]]) -> Self {
        let usual: Vec<Option<Nanos>> = tasks.iter().map(|runs| usual(runs)).collect();
        let mut long: Vec<Run> = Vec::new();
        for (runs, &usual) in tasks.iter().zip(&usual) {
            long.extend(runs.iter().filter_map(|&Run { start, execution }| {
                let more = execution.map(|it| it.saturating_sub(usual.unwrap_or(it)));
                (more != Some(0)).then_some(Run { start, execution: more })
            }));
        }
        long.sort_unstable_by_key(|run| run.start);
        let (mut curves, mut executions) = (Curves::new(RELEASES), Executions::new(JOBS));
        for Run { start, execution } in long {
            match execution {
                Some(execution) => {
                    curves.push((start, start));
                    executions.push(execution);
                }
                None => {
                    curves.interrupt();
                    executions.interrupt();
                }
            }
        }
        Self { usual, curves, executions }
    }
}

/// The execution that one of [`RARE`] jobs exceeds at most.
fn usual(runs: &[Run]) -> Option<Nanos> {
    let mut executions: Vec<Nanos> = runs.iter().filter_map(|run| run.execution).collect();
    let last = executions.len().checked_sub(1)?;
    let at = last - last / RARE;
    Some(*executions.select_nth_unstable(at).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(executions: impl IntoIterator<Item = Nanos>) -> Vec<Run> {
        let run = |(at, execution): (u64, Nanos)| Run { start: at * 1_000, execution: Some(execution) };
        (0..).zip(executions).map(run).collect()
    }

    #[test]
    fn tells_long_jobs_of_all_tasks_from_usual_ones() {
        let one = runs((0..2_000).map(|at| if at == 700 { 90 } else { 10 + at % 2 }));
        let mut other = runs((0..2_000).map(|at| if at == 900 { 400 } else { 5 }));
        other.iter_mut().for_each(|run| run.start += 3);
        let long = LongJobs::of(&[&one, &other, &[]]);
        assert_eq!(long.usual, [Some(11), Some(5), None]);
        assert_eq!((long.curves.releases(), long.curves.least()), (2, vec![200_003]));
        assert_eq!(long.executions.longest(), [395, 395 + 79]);
    }

    #[test]
    fn calls_none_long_of_few_jobs() {
        let few = runs([7, 1, 900, 3]);
        let long = LongJobs::of(&[&few]);
        assert_eq!((long.usual, long.curves.releases()), (vec![Some(900)], 0));
    }

    #[test]
    fn takes_no_distance_across_missing_jobs() {
        let mut runs = runs((0..4_000).map(|at| if at % 1_000 == 0 { 50 } else { 5 }));
        runs[1_500].execution = None;
        let long = LongJobs::of(&[&runs]);
        assert_eq!((long.usual[0], long.curves.stretches()), (Some(5), 2));
        assert_eq!((long.curves.least(), long.executions.longest()), (vec![1_000_000], &[45, 90][..]));
    }
}
