//! What the half without Linux shows of its tasks while it runs: their figures, and their jobs, if Linux wants to mark these.
//!
//! A row for each task and one ring for all of them, in the region. Of a row, the job that ends writes its figures, which nobody
//! but the jobs of that task does, so it takes loads and stores alone; the half on Linux reads them at any time, and so sees whole
//! words, of which a count may be one job ahead of a histogram. The ring is written with interrupts masked, since jobs of all levels do.
//! What does not fit, because Linux is behind, is counted.
//!
//! Neither half believes the other one more than that: numbers are numbers, and a name is cut and made text.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

use punctual_core::metrics::{COARSE_BUCKETS, Quantity};
use punctual_sync::shared::Ring;

/// How long a name may be, in bytes.
pub(super) const NAME: usize = 40;

/// What stands for "none".
pub(super) const NONE: u64 = u64::MAX;

/// How many jobs wait for being marked: at 30 000 jobs a second, those of 68 ms.
pub(super) const JOBS: usize = 2048;

/// A task of the half without Linux; all times in ns. Zero at first.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Shown {
    /// What does not change, written before the halves meet. A task that is not there has no name.
    pub(super) name: [AtomicU8; NAME],
    pub(super) level: AtomicU32,
    pub(super) measured: AtomicU32,
    /// As [`OnEarly`](crate::model::OnEarly) is declared, from 1 on; 0 if there is none.
    pub(super) on_early: AtomicU32,
    pub(super) burst: AtomicU32,
    pub(super) period: AtomicU64,
    pub(super) deadline: AtomicU64,
    pub(super) min_interval: AtomicU64,
    /// Written by Linux: by which number jobs are to be marked, and one more; 0 is not at all.
    pub(super) mark: AtomicU32,
    pub(super) figures: Figures,
}

/// What jobs write.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct Figures {
    pub(super) jobs: AtomicU64,
    pub(super) misses: AtomicU64,
    pub(super) overruns: AtomicU64,
    pub(super) early: AtomicU64,
    pub(super) jitter: Quantity,
    pub(super) response: Quantity,
    pub(super) execution: Quantity,
    pub(super) jitters: Histogram,
    pub(super) responses: Histogram,
    pub(super) executions: Histogram,
}

/// How many values there were in each bucket.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Histogram(pub(super) [AtomicU32; COARSE_BUCKETS]);

/// A job that has ended, by the clock of the half without Linux.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Ran {
    pub(super) released: u64,
    pub(super) started: u64,
    pub(super) ended: u64,
    /// At most; what does not fit is the largest number.
    pub(super) preempted: u32,
    /// The number by which it is marked.
    pub(super) mark: u16,
    reserved: u16,
}

/// The jobs that are to be marked.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Jobs {
    pub(super) ring: Ring<Ran, JOBS>,
    /// How many had no room.
    pub(super) lost: AtomicU64,
}

#[cfg(any(not(feature = "std"), test))]
mod write {
    use punctual_core::Duration;
    use punctual_core::metrics::coarse_bucket_of;

    use super::*;
    #[cfg(not(feature = "std"))]
    use crate::app::report::Summary;
    use crate::app::report::TaskReport;
    use crate::model::OnEarly;
    use crate::task::monitor::Job;

    #[inline]
    fn add(quantity: &Quantity, histogram: &Histogram, value: u64) {
        quantity.record(value);
        let count = &histogram.0[coarse_bucket_of(value)];
        count.store(count.load(Relaxed).saturating_add(1), Relaxed);
    }

    impl Shown {
        /// Says what the task is, before the halves meet.
        pub(crate) fn declare(&self, task: &TaskReport, measured: bool) {
            let mut length = task.name.len().min(NAME);
            while !task.name.is_char_boundary(length) {
                length -= 1;
            }
            self.name
                .iter()
                .zip(&task.name.as_bytes()[..length])
                .for_each(|(to, byte)| to.store(*byte, Relaxed));
            let nanos = |duration: Option<Duration>| duration.map_or(NONE, |duration| duration.as_ticks());
            self.level.store(task.level.into(), Relaxed);
            self.measured.store(measured.into(), Relaxed);
            self.burst.store(task.burst.into(), Relaxed);
            self.period.store(nanos(task.period), Relaxed);
            self.deadline.store(nanos(task.deadline), Relaxed);
            self.min_interval.store(nanos(task.min_interval), Relaxed);
            let on_early = match task.on_early {
                None => 0,
                Some(OnEarly::Count) => 1,
                Some(OnEarly::Delay) => 2,
                Some(OnEarly::Reject) => 3,
            };
            self.on_early.store(on_early, Relaxed);
        }

        /// Adds a job, and returns it if it is to be marked. For whoever occupies the task's level.
        #[inline]
        pub(crate) fn add(&self, job: Job) -> Option<Ran> {
            let since = |later: u64, earlier: u64| later.saturating_sub(earlier);
            let [release, start, end] = [job.release, job.start, job.end].map(|at| at.as_ticks());
            let (jitter, response) = (since(start, release), since(end, release));
            let execution = since(end, start).saturating_sub(job.preempted);
            let figures = &self.figures;
            figures.jobs.store(figures.jobs.load(Relaxed).wrapping_add(1), Relaxed);
            // One by one: of a loop the compiler makes a table.
            add(&figures.jitter, &figures.jitters, jitter);
            add(&figures.response, &figures.responses, response);
            add(&figures.execution, &figures.executions, execution);
            if job.deadline.is_some_and(|deadline| response > deadline.as_ticks()) {
                figures.misses.store(figures.misses.load(Relaxed).wrapping_add(1), Relaxed);
            }
            let mark = self.mark.load(Relaxed);
            (mark != 0).then(|| {
                let preempted = u32::try_from(job.preempted).unwrap_or(u32::MAX);
                let mark = (mark - 1) as u16;
                Ran { released: release, started: start, ended: end, preempted, mark, reserved: 0 }
            })
        }

        /// Shows how often the task was released while its job was unfinished.
        #[inline]
        pub(crate) fn set_overruns(&self, overruns: u64) {
            self.figures.overruns.store(overruns, Relaxed);
        }

        /// Shows how many releases came too early.
        #[inline]
        pub(crate) fn set_early(&self, early: u64) {
            self.figures.early.store(early, Relaxed);
        }

        /// Puts the figures of jobs into `report`.
        #[cfg(not(feature = "std"))]
        pub(crate) fn fill(&self, report: &mut TaskReport) {
            let figures = &self.figures;
            let jobs = figures.jobs.load(Relaxed);
            let summary = |quantity: &Quantity| Summary {
                max: quantity.max.load(Relaxed),
                mean: quantity.sum.load(Relaxed).checked_div(jobs).unwrap_or(0),
                ..Summary::default()
            };
            (report.jobs, report.misses) = (jobs, figures.misses.load(Relaxed));
            report.jitter = summary(&figures.jitter);
            report.response = summary(&figures.response);
            report.execution = summary(&figures.execution);
        }
    }
}

#[cfg(feature = "std")]
mod read {
    use punctual_core::Duration;
    use punctual_core::metrics::{TaskFigures, bucket_of, coarse_bucket_end, quantile};

    use super::*;
    use crate::app::report::{Summary, TaskReport};
    use crate::model::OnEarly;

    impl Shown {
        /// The task's name; `None` if there is no such task.
        pub(crate) fn name(&self) -> Option<String> {
            let name: Vec<u8> =
                self.name.iter().map(|byte| byte.load(Relaxed)).take_while(|byte| *byte != 0).collect();
            (!name.is_empty()).then(|| String::from_utf8_lossy(&name).into_owned())
        }

        pub(crate) fn level(&self) -> u8 {
            self.level.load(Relaxed) as u8
        }

        /// Whether its jobs are measured.
        pub(crate) fn is_measured(&self) -> bool {
            self.measured.load(Relaxed) != 0
        }

        pub(crate) fn period(&self) -> Option<Duration> {
            duration(&self.period)
        }

        pub(crate) fn deadline(&self) -> Option<Duration> {
            duration(&self.deadline)
        }

        /// Copies the figures to where others see them; `into` is nobody else's to write.
        pub(crate) fn copy(&self, into: &TaskFigures) {
            let figures = &self.figures;
            let copy = |from: &AtomicU64, to: &AtomicU64| to.store(from.load(Relaxed), Relaxed);
            copy(&figures.jobs, &into.jobs);
            copy(&figures.misses, &into.misses);
            copy(&figures.overruns, &into.occasional.overruns);
            copy(&figures.early, &into.occasional.early);
            for (from, to) in [
                (&figures.jitter, &into.jitter),
                (&figures.response, &into.response),
                (&figures.execution, &into.execution),
            ] {
                copy(&from.last, &to.last);
                copy(&from.max, &to.max);
                copy(&from.sum, &to.sum);
            }
            for (from, to) in [
                (&figures.jitters, &into.jitters),
                (&figures.responses, &into.responses),
                (&figures.executions, &into.executions),
            ] {
                for (end, count) in from.recorded() {
                    to.0[bucket_of(end)].store(count, Relaxed);
                }
            }
        }

        /// The task's row in a report.
        pub(crate) fn report(&self, name: String, partition: &str) -> TaskReport {
            let figures = &self.figures;
            TaskReport {
                name,
                partition: Some(partition.to_owned()),
                level: self.level(),
                period: self.period(),
                deadline: self.deadline(),
                min_interval: duration(&self.min_interval),
                burst: u16::try_from(self.burst.load(Relaxed)).unwrap_or(u16::MAX),
                on_early: match self.on_early.load(Relaxed) {
                    1 => Some(OnEarly::Count),
                    2 => Some(OnEarly::Delay),
                    3 => Some(OnEarly::Reject),
                    _ => None,
                },
                early: figures.early.load(Relaxed),
                without_linux: true,
                measured: self.is_measured(),
                jobs: figures.jobs.load(Relaxed),
                overruns: figures.overruns.load(Relaxed),
                misses: figures.misses.load(Relaxed),
                jitter: summary(&figures.jitter, &figures.jitters),
                response: summary(&figures.response, &figures.responses),
                execution: summary(&figures.execution, &figures.executions),
                ..TaskReport::default()
            }
        }
    }

    impl Histogram {
        /// The upper end of each bucket that is not empty, and its count.
        fn recorded(&self) -> impl Iterator<Item = (u64, u32)> {
            let counts = self.0.iter().map(|count| count.load(Relaxed)).enumerate();
            counts.filter(|(_, count)| *count != 0).map(|(bucket, count)| (coarse_bucket_end(bucket), count))
        }
    }

    fn duration(nanos: &AtomicU64) -> Option<Duration> {
        let nanos = nanos.load(Relaxed);
        (nanos != NONE).then(|| Duration::from_ticks(nanos))
    }

    fn summary(quantity: &Quantity, histogram: &Histogram) -> Summary {
        let max = quantity.max.load(Relaxed);
        let buckets: Vec<_> = histogram.recorded().map(|(end, count)| (end.min(max), count.into())).collect();
        let count: u64 = buckets.iter().map(|bucket| bucket.1).sum();
        let mean = if count == 0 { 0.0 } else { quantity.sum.load(Relaxed) as f64 / count as f64 };
        let quantile = |part| quantile(&buckets, part);
        Summary { max, p999: quantile(0.999), p50: quantile(0.5), mean, buckets }
    }
}
