//! How long the jobs that run have executed.

use punctual_core::heartbeat::Running;

/// A level at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Level {
    /// Which heartbeat it is.
    pub(crate) index: usize,
    pub(crate) partition: u32,
    pub(crate) level: u32,
    /// The execution time of its partition's jobs when its last job ended, in ns.
    pub(crate) executed: u64,
    /// The job that runs there, if one does.
    pub(crate) running: Option<Running>,
}

/// A job that runs, and how long it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) level: Level,
    pub(crate) running: Running,
    /// From its beginning on, without jobs of higher levels of its partition, in ns. What it waits for and what the kernel takes
    /// from it is in it.
    pub(crate) executed: u64,
    /// Whether no higher job of its partition runs.
    pub(crate) is_highest: bool,
}

/// The jobs that run at `now`, in ns, lowest level first.
pub(crate) fn jobs(levels: &[Level], now: u64) -> Vec<Job> {
    let mut levels = levels.to_vec();
    levels.sort_by_key(|level| (level.partition, level.level));
    let mut jobs = Vec::new();
    for partition in levels.chunk_by(|one, other| one.partition == other.partition) {
        let executed = partition.iter().map(|level| level.executed).max().unwrap_or(0);
        // What lies above a job: the next that runs, from whose beginning on all time is its own; or else nothing.
        let mut above = (now, executed, true);
        let mut here = Vec::new();
        for level in partition.iter().rev() {
            let Some(running) = level.running else { continue };
            let (until, executed_until, is_highest) = above;
            let others = executed_until.saturating_sub(running.executed);
            let executed = until.saturating_sub(running.since).saturating_sub(others);
            here.push(Job { level: *level, running, executed, is_highest });
            above = (running.since.min(until), running.executed, false);
        }
        jobs.extend(here.into_iter().rev());
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(partition: u32, level: u32, executed: u64, job: Option<(u64, u64)>) -> Level {
        let running =
            job.map(|(since, executed)| Running { task: level, thread: 1, since, executed, number: 1 });
        Level { index: 0, partition, level, executed, running }
    }

    fn executed(levels: &[Level], now: u64) -> Vec<(u32, u64, bool)> {
        jobs(levels, now).iter().map(|job| (job.level.level, job.executed, job.is_highest)).collect()
    }

    #[test]
    fn a_job_alone_has_executed_since_it_began() {
        assert_eq!(executed(&[level(0, 1, 0, Some((100, 0))), level(0, 2, 0, None)], 350), [(1, 250, true)]);
    }

    #[test]
    fn jobs_that_have_preempted_it_and_ended_do_not_count() {
        // Jobs of level 2 have executed 40 since.
        assert_eq!(
            executed(&[level(0, 1, 10, Some((100, 10))), level(0, 2, 50, None)], 350),
            [(1, 210, true)]
        );
    }

    #[test]
    fn a_job_that_preempts_it_now_does_not_count() {
        let levels = [
            level(0, 3, 70, Some((300, 70))),
            level(0, 1, 10, Some((100, 10))),
            level(0, 2, 70, None),
            level(1, 1, 0, Some((340, 0))),
        ];
        // Of 200 until the higher one began, 60 were others'.
        assert_eq!(executed(&levels, 350), [(1, 140, false), (3, 50, true), (1, 10, true)]);
    }

    #[test]
    fn an_earlier_clock_and_senseless_figures_are_nothing() {
        assert_eq!(executed(&[level(0, 1, u64::MAX, Some((100, 3)))], 50), [(1, 0, true)]);
        let both = [level(0, 1, 0, Some((100, 9))), level(0, 2, 0, Some((900, 1)))];
        assert_eq!(executed(&both, 500), [(1, 400, false), (2, 0, true)]);
    }
}
