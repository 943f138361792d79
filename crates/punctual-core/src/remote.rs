//! Layout of the memory in which an app on a CPU without Linux shows its figures to Linux.
//!
//! The app is the only writer, except for [`Header::wants_jobs`]. The area begins with the app's
//! name and counts, followed by a [`Row`] for each of the first [`ROWS`] tasks. A
//! [ring](Area::jobs) of [`Job`]s holds the jobs that Linux is to mark in its trace; jobs that find
//! the ring full are counted in [`Header::lost`].
//!
//! Each word is an atomic with one writer, so a job takes loads and stores alone, and a reader sees
//! whole words, of which a count may be one job ahead of a histogram. Neither side trusts the
//! other: every value is valid, numbers of rows are bounded, and names are cut at their end. Zeroed
//! memory is an area without a published task. Times are in ns by the clock of the app's CPU.
//!
//! `punctual` writes this memory on boards that have it, and `punctual isolate run --offline` reads
//! it.

// Not the atomics of a model: this is a layout.
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::metrics::{COARSE_BUCKETS, Quantity, TaskFigures, bucket_of, coarse_bucket_end, coarse_bucket_of};

/// Size of the memory in bytes.
pub const SIZE: usize = 0x4_0000;
/// Capacity of the ring of jobs: 68 ms of 30 000 jobs a second.
pub const JOBS: usize = 2048;
/// Memory for the ring of jobs in bytes, with the header of the ring.
const JOBS_SIZE: usize = 0x1_1000;
/// Number of rows.
pub const ROWS: usize = (SIZE - JOBS_SIZE - size_of::<Header>()) / size_of::<Row>();
/// Longest name in bytes.
pub const MAX_NAME: usize = 40;

/// "PNREMOTE", read as a little-endian number.
const MAGIC: u64 = u64::from_le_bytes(*b"PNREMOTE");
/// Stands for "no duration".
const NONE: u64 = u64::MAX;

/// The start of the memory.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Area {
    /// The app.
    pub header: Header,
    /// The tasks. Linux reads those that are [published](Self::rows).
    pub all_rows: [Row; ROWS],
    jobs: Room,
}

/// Memory whose structure this module does not know.
#[derive(Debug)]
#[repr(C, align(128))]
struct Room([AtomicU64; JOBS_SIZE / 8]);

/// The app as a whole.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Header {
    /// Written last.
    magic: AtomicU64,
    tasks: AtomicU32,
    /// 1 while Linux marks jobs, so that the app leaves them in the ring. Linux writes this word
    /// alone.
    pub wants_jobs: AtomicU32,
    /// Start of the run; 0 before the end of `init`.
    pub started: AtomicU64,
    /// 1 once the run has ended.
    pub stopping: AtomicU32,
    reserved: u32,
    /// Number of jobs released and never run.
    pub dropped: AtomicU64,
    /// Number of jobs that found no room in the ring.
    pub lost: AtomicU64,
    /// Name of the app.
    pub app: Name,
    /// Name of the partition.
    pub partition: Name,
}

const _: () = assert!(size_of::<Area>() <= SIZE);

impl Area {
    /// Declares the app, and begins a run without tasks that are shown.
    pub fn declare(&self, app: &str, partition: &str) {
        let header = &self.header;
        header.magic.store(0, Ordering::Relaxed);
        header.app.set(app);
        header.partition.set(partition);
        header.tasks.store(0, Ordering::Relaxed);
        header.started.store(0, Ordering::Relaxed);
        header.stopping.store(0, Ordering::Relaxed);
        header.dropped.store(0, Ordering::Relaxed);
    }

    /// Publishes the first `tasks` rows.
    pub fn publish(&self, tasks: usize) {
        self.header.tasks.store(tasks.min(ROWS) as u32, Ordering::Relaxed);
        // Release: a reader that finds the magic number finds the rows and names.
        self.header.magic.store(MAGIC, Ordering::Release);
    }

    /// Returns whether the app has published its tasks.
    pub fn is_published(&self) -> bool {
        // Acquire: see `publish`.
        self.header.magic.load(Ordering::Acquire) == MAGIC
    }

    /// The memory for the ring, a `Ring<Words, JOBS>` of `punctual-sync`, and its size in bytes.
    pub fn jobs(&self) -> (*mut u8, usize) {
        (core::ptr::from_ref(&self.jobs).cast_mut().cast(), JOBS_SIZE)
    }

    /// The published rows.
    pub fn rows(&self) -> &[Row] {
        match self.is_published() {
            true => &self.all_rows[..(self.header.tasks.load(Ordering::Relaxed) as usize).min(ROWS)],
            false => &[],
        }
    }
}

/// A name in UTF-8, followed by zeros.
#[derive(Debug)]
#[repr(C)]
pub struct Name([AtomicU8; MAX_NAME]);

impl Name {
    fn set(&self, name: &str) {
        let name = name.as_bytes()[..name.floor_char_boundary(MAX_NAME)].iter();
        let padded = name.copied().chain(core::iter::repeat(0));
        self.0.iter().zip(padded).for_each(|(to, byte)| to.store(byte, Ordering::Relaxed));
    }

    /// The bytes, and how many of them belong to the name.
    pub fn get(&self) -> ([u8; MAX_NAME], usize) {
        let bytes = self.0.each_ref().map(|byte| byte.load(Ordering::Relaxed));
        (bytes, bytes.iter().position(|byte| *byte == 0).unwrap_or(MAX_NAME))
    }
}

/// A task.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Row {
    /// Name of the task.
    pub name: Name,
    level: AtomicU32,
    measured: AtomicU32,
    period: AtomicU64,
    deadline: AtomicU64,
    /// Figures that the job which ends writes.
    pub figures: Figures,
}

/// The figures of a task.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Figures {
    /// Number of jobs that have ended.
    pub jobs: AtomicU64,
    /// Number of jobs that ended after their deadline.
    pub misses: AtomicU64,
    /// Number of releases that found the previous job unfinished.
    pub overruns: AtomicU64,
    /// Number of early releases.
    pub early: AtomicU64,
    /// Release jitter J.
    pub jitter: Distribution,
    /// Response time R.
    pub response: Distribution,
    /// Execution time C.
    pub execution: Distribution,
}

/// A quantity over all jobs, with a histogram of 16 buckets for each doubling.
#[derive(Debug)]
#[repr(C)]
pub struct Distribution {
    quantity: Quantity,
    buckets: [AtomicU32; COARSE_BUCKETS],
}

impl Distribution {
    /// # Safety
    /// No other thread writes the distribution during the call.
    #[inline]
    unsafe fn record(&self, value: u64) {
        // SAFETY: by this function's contract.
        unsafe { self.quantity.record(value) };
        let count = &self.buckets[coarse_bucket_of(value)];
        count.store(count.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
    }

    fn clear(&self) {
        let Quantity { last, max, sum } = &self.quantity;
        [last, max, sum].into_iter().for_each(|word| word.store(0, Ordering::Relaxed));
        self.buckets.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    }

    /// Returns the last, the largest and the sum of all values.
    pub fn quantity(&self) -> &Quantity {
        &self.quantity
    }

    /// Returns the end of each nonempty bucket, at most 1/16 above its values, and its count.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> + Clone {
        let counts = self.buckets.iter().map(|count| count.load(Ordering::Relaxed)).enumerate();
        let nonempty = counts.filter(|(_, count)| *count != 0);
        nonempty.map(|(bucket, count)| (coarse_bucket_end(bucket), count.into()))
    }

    fn copy(&self, quantity: &Quantity, buckets: &[AtomicU32]) {
        for (from, to) in [
            (&self.quantity.last, &quantity.last),
            (&self.quantity.max, &quantity.max),
            (&self.quantity.sum, &quantity.sum),
        ] {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.counts().for_each(|(end, count)| buckets[bucket_of(end)].store(count as u32, Ordering::Relaxed));
    }
}

impl Row {
    /// Declares the task, and clears its figures. Before [`Area::publish`].
    pub fn declare(&self, name: &str, level: u8, measured: bool, period: Option<u64>, deadline: Option<u64>) {
        self.name.set(name);
        self.level.store(level.into(), Ordering::Relaxed);
        self.measured.store(measured.into(), Ordering::Relaxed);
        self.period.store(period.unwrap_or(NONE), Ordering::Relaxed);
        self.deadline.store(deadline.unwrap_or(NONE), Ordering::Relaxed);
        let Figures { jobs, misses, overruns, early, jitter, response, execution } = &self.figures;
        [jobs, misses, overruns, early].into_iter().for_each(|word| word.store(0, Ordering::Relaxed));
        [jitter, response, execution].into_iter().for_each(Distribution::clear);
    }

    /// Adds a job.
    ///
    /// Real-time safety: some dozens of loads and stores.
    ///
    /// # Safety
    /// The calling thread occupies the task's level: no other thread writes the row during the
    /// call.
    #[inline]
    pub unsafe fn record(&self, job: &Job) {
        let figures = &self.figures;
        let response = job.ended.saturating_sub(job.released);
        let add = |count: &AtomicU64| {
            count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        };
        add(&figures.jobs);
        // One by one: of a loop the compiler makes a table.
        // SAFETY: by this function's contract.
        unsafe {
            figures.jitter.record(job.started.saturating_sub(job.released));
            figures.response.record(response);
            figures.execution.record(job.ended.saturating_sub(job.started).saturating_sub(job.preempted));
        }
        // No response time is above "none".
        if response > self.deadline.load(Ordering::Relaxed) {
            add(&figures.misses);
        }
    }

    /// Level of the task.
    pub fn level(&self) -> u8 {
        self.level.load(Ordering::Relaxed) as u8
    }

    /// Returns whether jobs are measured.
    pub fn is_measured(&self) -> bool {
        self.measured.load(Ordering::Relaxed) != 0
    }

    /// Period in ns.
    pub fn period(&self) -> Option<u64> {
        Some(self.period.load(Ordering::Relaxed)).filter(|nanos| *nanos != NONE)
    }

    /// Relative deadline in ns.
    pub fn deadline(&self) -> Option<u64> {
        Some(self.deadline.load(Ordering::Relaxed)).filter(|nanos| *nanos != NONE)
    }

    /// Copies the figures into the form that `punctual top` reads. `into` has no other writer.
    pub fn copy(&self, into: &TaskFigures) {
        let figures = &self.figures;
        // The row counts every job in its terms, and none as undisturbed.
        for (from, to) in [
            (&figures.jobs, &into.jobs),
            (&figures.misses, &into.misses),
            (&figures.overruns, &into.occasional.overruns),
            (&figures.early, &into.occasional.early),
        ] {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        figures.jitter.copy(&into.jitter, &into.jitters.0);
        figures.response.copy(&into.response, &into.responses.0);
        figures.execution.copy(&into.execution, &into.executions.0);
    }
}

/// A job that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// Row of its task.
    pub row: u16,
    /// Release.
    pub released: u64,
    /// Start.
    pub started: u64,
    /// End.
    pub ended: u64,
    /// Execution time of the jobs that preempted it.
    pub preempted: u64,
}

/// The form of a job in the ring.
pub type Words = [u64; 4];

impl Job {
    /// The job as plain data. Preemption counts up to 2^48 ns, which is three days.
    #[inline]
    pub fn to_words(self) -> Words {
        let preempted = self.preempted.min((1 << 48) - 1);
        [self.released, self.started, self.ended, preempted << 16 | u64::from(self.row)]
    }

    /// The job of these words.
    pub fn from_words([released, started, ended, rest]: Words) -> Self {
        Self { row: rest as u16, released, started, ended, preempted: rest >> 16 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::quantile;

    /// An area of zeros.
    fn area() -> Box<Area> {
        // SAFETY: the area consists of atomics; zero is a valid value.
        unsafe { Box::<Area>::new_zeroed().assume_init() }
    }

    fn value(word: &AtomicU64) -> u64 {
        word.load(Ordering::Relaxed)
    }

    fn text((bytes, length): ([u8; MAX_NAME], usize)) -> String {
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    fn job(released: u64, started: u64, ended: u64) -> Job {
        Job { row: 0, released, started, ended, preempted: 10 }
    }

    #[test]
    fn publishes_header_last() {
        let area = area();
        assert!(area.rows().is_empty());
        area.declare("app", "control");
        area.all_rows[0].declare("sample", 3, true, Some(100_000), None);
        assert!(!area.is_published() && area.rows().is_empty());
        area.publish(1);
        let [row] = area.rows() else { panic!("one row is published") };
        assert_eq!(
            (text(area.header.app.get()), text(area.header.partition.get())),
            ("app".into(), "control".into())
        );
        assert_eq!((text(row.name.get()), row.level(), row.is_measured()), ("sample".into(), 3, true));
        assert_eq!((row.period(), row.deadline()), (Some(100_000), None));
        area.publish(ROWS + 1);
        assert_eq!(area.rows().len(), ROWS);
    }

    #[test]
    fn truncates_names_between_characters() {
        let area = area();
        area.declare(&("x".repeat(39) + "ä"), "");
        assert_eq!(
            (text(area.header.app.get()), text(area.header.partition.get())),
            ("x".repeat(39), String::new())
        );
    }

    #[test]
    fn records_exact_extremes_and_quantiles_within_a_bucket() {
        let area = area();
        let row = &area.all_rows[0];
        row.declare("sample", 3, true, None, Some(45));
        // SAFETY: a single thread.
        (1..=1_000).for_each(|n| unsafe { row.record(&job(0, n, n + 40)) });
        assert_eq!((value(&row.figures.jobs), value(&row.figures.misses)), (1_000, 995));
        let Figures { jitter, response, execution, .. } = &row.figures;
        let extremes =
            [jitter, response, execution].map(|of| (value(&of.quantity.max), value(&of.quantity.sum)));
        assert_eq!(extremes, [(1_000, 500_500), (1_040, 540_500), (30, 30_000)]);
        assert!(
            (500..=531).contains(&quantile(jitter.counts(), 0.5)),
            "{:?}",
            quantile(jitter.counts(), 0.5)
        );
        assert!((999..=1_061).contains(&quantile(jitter.counts(), 0.999)));
        assert_eq!(execution.counts().collect::<Vec<_>>(), [(30, 1_000)]);
        row.declare("sample", 3, true, None, None);
        assert_eq!(
            (value(&row.figures.jobs), row.figures.jitter.counts().count()),
            (0, 0),
            "a new run starts at zero"
        );
    }

    #[test]
    fn copies_metrics_for_top() {
        let area = area();
        let row = &area.all_rows[0];
        row.declare("sample", 3, true, None, None);
        // SAFETY: a single thread.
        (1..=1_000).for_each(|n| unsafe { row.record(&job(0, n, n + 40)) });
        row.figures.overruns.store(5, Ordering::Relaxed);
        row.figures.early.store(6, Ordering::Relaxed);
        // SAFETY: the figures consist of atomics; zero is a valid value.
        let figures = unsafe { Box::<TaskFigures>::new_zeroed().assume_init() };
        row.copy(&figures);
        row.copy(&figures);
        let counted: u32 = figures.jitters.0.iter().map(|count| count.load(Ordering::Relaxed)).sum();
        assert_eq!((value(&figures.jobs), counted, value(&figures.jitter.sum)), (1_000, 1_000, 500_500));
        assert_eq!((value(&figures.occasional.overruns), value(&figures.occasional.early)), (5, 6));
        assert_eq!(figures.executions.0[bucket_of(30)].load(Ordering::Relaxed), 1_000);
    }

    #[test]
    fn never_panics_on_any_bytes() {
        for byte in [0xff, 0x80, 1] {
            let mut area = area();
            // SAFETY: the area consists of atomics; every bit pattern is valid, and nothing else
            // uses it.
            unsafe { (&raw mut *area).write_bytes(byte, 1) };
            assert!(area.rows().is_empty());
            let row = &area.all_rows[0];
            assert_eq!(row.name.get().1, MAX_NAME);
            let _ = quantile(row.figures.response.counts(), 0.999);
            // SAFETY: as above.
            row.copy(&*unsafe { Box::<TaskFigures>::new_zeroed().assume_init() });
        }
    }

    #[test]
    fn jobs_survive_the_ring() {
        let job = Job { row: 7, released: 1, started: 2, ended: u64::MAX, preempted: 1 << 47 };
        assert_eq!(Job::from_words(job.to_words()), job);
        let long = Job { preempted: u64::MAX, ..job };
        assert_eq!(Job::from_words(long.to_words()), Job { preempted: (1 << 48) - 1, ..job });
    }
}
