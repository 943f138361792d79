//! Rare long jobs of any task, caused by CPU time that the rest of the machine takes invisibly.
//!
//! A host that takes the CPU of a virtual machine interrupts an arbitrary job, and the kernel
//! accounts the time to that job. If C included this time for every affected task, each of their
//! jobs would be assumed that long, and soon no bound would exist. Here C covers all but a few
//! jobs, and the excess of those becomes one source above all tasks of the partition, with its own
//! longest execution time and least distances ([`Curves`], [`Executions`]). Together they cover
//! every observed job.

use super::curves::Curves;
use super::executions::Executions;
use super::thread::{JOBS, RELEASES};
use crate::time::Nanos;

/// Number of jobs of a task of which one may be long.
pub const RARE: usize = 512;

/// A job, or a gap in the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Start instant, in ns.
    pub start: Nanos,
    /// C in ns; `None` if unknown.
    pub execution: Option<Nanos>,
}

/// Execution times of several tasks of a partition, split into usual time and excess.
#[derive(Debug, Clone)]
pub struct LongJobs {
    /// Usual execution time of each task; `None` if unknown.
    pub usual: Vec<Option<Nanos>>,
    /// Distances between the starts of long jobs of any task.
    pub curves: Curves,
    /// Excess of the long jobs.
    pub executions: Executions,
}

impl LongJobs {
    /// Splits the jobs of each task, given in order.
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

/// Returns the execution time that at most one of [`RARE`] jobs exceeds.
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
    fn separates_rare_long_jobs_of_all_tasks() {
        let one = runs((0..2_000).map(|at| if at == 700 { 90 } else { 10 + at % 2 }));
        let mut other = runs((0..2_000).map(|at| if at == 900 { 400 } else { 5 }));
        other.iter_mut().for_each(|run| run.start += 3);
        let long = LongJobs::of(&[&one, &other, &[]]);
        assert_eq!(long.usual, [Some(11), Some(5), None]);
        assert_eq!((long.curves.releases(), long.curves.least()), (2, vec![200_003]));
        assert_eq!(long.executions.longest(), [395, 395 + 79]);
    }

    #[test]
    fn needs_many_jobs_to_call_one_long() {
        let few = runs([7, 1, 900, 3]);
        let long = LongJobs::of(&[&few]);
        assert_eq!((long.usual, long.curves.releases()), (vec![Some(900)], 0));
    }

    #[test]
    fn ignores_distances_across_missing_jobs() {
        let mut runs = runs((0..4_000).map(|at| if at % 1_000 == 0 { 50 } else { 5 }));
        runs[1_500].execution = None;
        let long = LongJobs::of(&[&runs]);
        assert_eq!((long.usual[0], long.curves.stretches()), (Some(5), 2));
        assert_eq!((long.curves.least(), long.executions.longest()), (vec![1_000_000], &[45, 90][..]));
    }
}
