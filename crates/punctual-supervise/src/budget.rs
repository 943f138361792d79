//! The elapsed time and the CPU time of running jobs.

use std::collections::BTreeMap;

use punctual_core::heartbeat::Running;

/// A snapshot of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Level {
    /// The index of its heartbeat.
    pub(crate) index: usize,
    pub(crate) partition: u32,
    pub(crate) level: u32,
    /// The execution time of its partition's jobs when its last job ended, in ns.
    pub(crate) executed: u64,
    /// The running job, if any.
    pub(crate) running: Option<Running>,
    /// The CPU time of its thread shortly before, in ns; `None` if unknown.
    pub(crate) clock: Option<u64>,
}

/// A running job. Times in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) level: Level,
    pub(crate) running: Running,
    /// The time since its start, without jobs of higher levels of its partition. It includes the
    /// time for which the job slept or was preempted by other threads or the kernel.
    pub(crate) elapsed: u64,
    /// The CPU time that it has used, without that of jobs that it called; `None` if unknown.
    pub(crate) cpu: Option<u64>,
    /// `true` if no job of a higher level of its partition is running.
    pub(crate) is_highest: bool,
}

/// Returns the jobs that run at `now`, in ns, lowest level first.
pub(crate) fn jobs(levels: &[Level], now: u64) -> Vec<Job> {
    let mut levels = levels.to_vec();
    levels.sort_by_key(|level| (level.partition, level.level));
    let mut jobs = Vec::new();
    for partition in levels.chunk_by(|one, other| one.partition == other.partition) {
        let executed = partition.iter().map(|level| level.executed).max().unwrap_or(0);
        // The bound above a job: the next running job, which accounts for all time since its start;
        // or `now`.
        let mut above = (now, executed, true);
        let mut here: Vec<Job> = Vec::new();
        for level in partition.iter().rev() {
            let Some(running) = level.running else { continue };
            let (until, executed_until, is_highest) = above;
            let others = executed_until.saturating_sub(running.executed);
            let elapsed = until.saturating_sub(running.since).saturating_sub(others);
            // A called job runs on its caller's thread, and was the last to read the clock.
            let called = here.iter().rev().find(|job| job.running.thread == running.thread);
            let clock = called.map_or(level.clock, |called| called.running.cpu);
            let used = |(clock, before): (u64, u64)| {
                clock.saturating_sub(before).saturating_sub(running.called).min(elapsed)
            };
            let cpu = clock.zip(running.cpu).map(used);
            here.push(Job { level: *level, running, elapsed, cpu, is_highest });
            above = (running.since.min(until), running.executed, false);
        }
        jobs.extend(here.into_iter().rev());
    }
    jobs
}

/// The first clock readings of jobs that did not read their clocks at the start, by level.
///
/// Such a job runs on a polling thread, which does not enter the kernel. Until the first reading,
/// all of its time counts as CPU time.
#[derive(Debug, Default)]
pub(crate) struct FirstReadings(BTreeMap<usize, FirstReading>);

#[derive(Debug, Clone, Copy)]
struct FirstReading {
    number: u64,
    clock: u64,
    elapsed: u64,
}

impl FirstReadings {
    /// Returns `true` if `job` needs a first reading.
    pub(crate) fn lacks(&self, job: &Job) -> bool {
        let known = self.0.get(&job.level.index).is_some_and(|first| first.number == job.running.number);
        job.running.cpu.is_none() && !known
    }

    /// Fills in the CPU time of a job that did not read the clock.
    pub(crate) fn complete(&mut self, job: &mut Job) {
        let (None, Some(clock)) = (job.running.cpu, job.level.clock) else { return };
        let this = FirstReading { number: job.running.number, clock, elapsed: job.elapsed };
        let first = self.0.entry(job.level.index).or_insert(this);
        if first.number != this.number {
            *first = this;
        }
        job.cpu = Some(first.elapsed.saturating_add(clock.saturating_sub(first.clock)).min(job.elapsed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(partition: u32, level: u32, executed: u64, job: Option<(u64, u64)>) -> Level {
        let running = job.map(|(since, executed)| Running {
            task: level,
            thread: level,
            since,
            executed,
            number: 1,
            cpu: None,
            called: 0,
        });
        Level { index: 0, partition, level, executed, running, clock: None }
    }

    /// Returns a job that started at 100 on `thread`, whose clock was at `cpu` then and is at
    /// `clock` now.
    fn measured(number: u32, thread: u32, (cpu, called): (u64, u64), clock: u64) -> Level {
        let mut level = level(0, number, 0, Some((100, 0)));
        level.clock = Some(clock);
        level.running = level.running.map(|job| Running { thread, cpu: Some(cpu), called, ..job });
        level
    }

    fn used(levels: &[Level], now: u64) -> Vec<Option<u64>> {
        jobs(levels, now).iter().map(|job| job.cpu).collect()
    }

    #[test]
    fn displaced_job_used_cpu_time_of_its_thread() {
        let displaced = measured(1, 7, (1_000, 0), 1_035);
        let job = jobs(&[displaced], 200)[0];
        assert_eq!((job.elapsed, job.cpu), (100, Some(35)));
        assert_eq!(used(&[measured(1, 7, (1_000, 0), 9_000)], 200), [Some(100)], "at most the elapsed time");
        assert_eq!(used(&[Level { clock: None, ..displaced }], 200), [None], "unknown is not zero");
    }

    #[test]
    fn called_jobs_do_not_use_cpu_time_of_caller() {
        assert_eq!(used(&[measured(1, 7, (1_000, 20), 1_050)], 200), [Some(30)], "the called job has ended");
        let running = measured(2, 7, (1_010, 0), 1_050);
        let mut levels = [measured(1, 7, (1_000, 4), 1_050), running];
        levels[1].running = levels[1].running.map(|job| Running { since: 120, ..job });
        assert_eq!(used(&levels, 200), [Some(6), Some(40)], "the called job runs on the same thread");
        levels[1].running = levels[1].running.map(|job| Running { thread: 8, ..job });
        assert_eq!(used(&levels, 200)[0], Some(20), "on another thread it preempts: at most 20 have elapsed");
    }

    #[test]
    fn job_without_clock_reading_counts_from_first_observation() {
        let polls = |number, clock, now| {
            let mut level = level(0, 1, 0, Some((100, 0)));
            (level.clock, level.running) = (Some(clock), level.running.map(|job| Running { number, ..job }));
            jobs(&[level], now)[0]
        };
        let mut first = FirstReadings::default();
        let cpu = |first: &mut FirstReadings, mut job: Job| {
            let lacks = first.lacks(&job);
            first.complete(&mut job);
            (lacks, job.cpu)
        };
        assert_eq!(cpu(&mut first, polls(1, 5_000, 110)), (true, Some(10)));
        assert_eq!(cpu(&mut first, polls(1, 5_020, 200)), (false, Some(30)), "displaced for 70");
        assert_eq!(cpu(&mut first, polls(2, 5_100, 150)), (true, Some(50)), "another job");
    }

    fn executed(levels: &[Level], now: u64) -> Vec<(u32, u64, bool)> {
        jobs(levels, now).iter().map(|job| (job.level.level, job.elapsed, job.is_highest)).collect()
    }

    #[test]
    fn lone_job_executes_since_start() {
        assert_eq!(executed(&[level(0, 1, 0, Some((100, 0))), level(0, 2, 0, None)], 350), [(1, 250, true)]);
    }

    #[test]
    fn excludes_ended_preempting_jobs() {
        // Jobs of level 2 have executed for 40 since then.
        assert_eq!(
            executed(&[level(0, 1, 10, Some((100, 10))), level(0, 2, 50, None)], 350),
            [(1, 210, true)]
        );
    }

    #[test]
    fn excludes_current_preempting_job() {
        let levels = [
            level(0, 3, 70, Some((300, 70))),
            level(0, 1, 10, Some((100, 10))),
            level(0, 2, 70, None),
            level(1, 1, 0, Some((340, 0))),
        ];
        // Of the 200 before the higher job started, other jobs used 60.
        assert_eq!(executed(&levels, 350), [(1, 140, false), (3, 50, true), (1, 10, true)]);
    }

    #[test]
    fn rejects_earlier_clock_and_invalid_figures() {
        assert_eq!(executed(&[level(0, 1, u64::MAX, Some((100, 3)))], 50), [(1, 0, true)]);
        let both = [level(0, 1, 0, Some((100, 9))), level(0, 2, 0, Some((900, 1)))];
        assert_eq!(executed(&both, 500), [(1, 400, false), (2, 0, true)]);
    }
}
