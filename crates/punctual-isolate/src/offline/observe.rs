//! The app on the CPU, as Linux sees it: its figures for `punctual top`, and its jobs as marks in
//! the kernel's trace.
//!
//! The app leaves both in memory, by [`punctual_core::remote`]. The loader copies the figures into
//! an anonymous file as every app on Linux has one, and writes a mark for each job that has ended,
//! with the times of the job.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use punctual_core::metrics::{
    self, Header, MAGIC, MAX_TRAFFIC, TaskFigures, TrafficFigures, UPDATE_PERIOD, VERSION,
};
use punctual_core::remote::{Area, JOBS, Job, MAX_NAME, Words};
use punctual_core::trace_marker::{self, OfflineJob};
use punctual_sync::shared::{Ring, RingConsumer, attach_at};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use serde_json::json;

/// Interval of the task names in the trace, for recordings that begin later.
const TASK_NAMES_INTERVAL: Duration = Duration::from_secs(1);

/// Shows an app from the moment it publishes its tasks.
#[derive(Debug)]
pub(super) struct Observer {
    area: &'static Area,
    cpu: u32,
    marker: Option<File>,
    has_begun: bool,
    figures: Option<Figures>,
    marks: Option<Marks>,
}

impl Observer {
    /// An observer of the app on `cpu`, which marks jobs in `marker`.
    pub(super) fn new(area: &'static Area, cpu: u32, marker: Option<File>) -> Self {
        Self { area, cpu, marker, has_begun: false, figures: None, marks: None }
    }

    /// Copies figures and marks jobs. Returns what cannot be shown, once.
    pub(super) fn update(&mut self) -> Vec<String> {
        if !self.has_begun {
            return if self.area.is_published() { self.begin() } else { Vec::new() };
        }
        if let Some(marks) = &mut self.marks {
            marks.update(self.area);
        }
        let updated = self.figures.as_mut().map_or(Ok(()), |figures| figures.update(self.area, false));
        updated.err().map(|error| self.not_shown(&error)).into_iter().collect()
    }

    fn begin(&mut self) -> Vec<String> {
        self.has_begun = true;
        let mut lacking = Vec::new();
        match Figures::new(self.area, self.cpu) {
            Ok(figures) => self.figures = Some(figures),
            Err(error) => lacking.push(self.not_shown(&error)),
        }
        if let Some(marker) = self.marker.take() {
            match Marks::new(self.area, self.cpu, marker) {
                Ok(marks) => self.marks = Some(marks),
                Err(why) => lacking.push(format!("the jobs on CPU {} are not marked: {why}", self.cpu)),
            }
        }
        lacking
    }

    fn not_shown(&mut self, error: &io::Error) -> String {
        self.figures = None;
        format!("`punctual top` cannot show the app on CPU {}: {error}", self.cpu)
    }

    /// Copies the last figures and marks the last jobs. Returns what could not be marked.
    pub(super) fn end(mut self) -> Option<String> {
        // A first update may be the only one of a short run.
        self.update();
        if let Some(figures) = self.figures {
            // On a failure the file keeps the previous figures.
            let _ = figures.finish(self.area);
        }
        let lost = self.marks.map_or(0, |marks| marks.finish(self.area));
        (lost > 0).then(|| format!("{lost} jobs on CPU {} are not marked: Linux was behind", self.cpu))
    }
}

/// The text of a name that the app wrote.
fn text((bytes, length): ([u8; MAX_NAME], usize)) -> String {
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

/// The anonymous file that `punctual top` finds.
#[derive(Debug)]
struct Figures {
    file: File,
    header: Box<Header>,
    /// One task at a time passes through here.
    task: Box<TaskFigures>,
    written: Instant,
}

const TASKS_AT: usize = size_of::<Header>().next_multiple_of(align_of::<TaskFigures>());

impl Figures {
    fn new(area: &Area, cpu: u32) -> io::Result<Self> {
        let rows = area.rows();
        let traffic_at = TASKS_AT + rows.len() * size_of::<TaskFigures>();
        let text_at = traffic_at + MAX_TRAFFIC * size_of::<TrafficFigures>();
        let about = about(area, cpu);
        let name = format!("{}{}", metrics::NAME, text(area.header.app.get()));
        let file = File::from(memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
        file.set_len((text_at + about.len()) as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
        file.write_all_at(about.as_bytes(), text_at as u64)?;
        // SAFETY: both consist of atomics; zero is a valid value.
        let (header, task) = unsafe {
            (Box::<Header>::new_zeroed().assume_init(), Box::<TaskFigures>::new_zeroed().assume_init())
        };
        header.version.store(VERSION, Relaxed);
        header.tasks.store(rows.len() as u32, Relaxed);
        header.tasks_at.store(TASKS_AT as u64, Relaxed);
        header.stride.store(size_of::<TaskFigures>() as u64, Relaxed);
        header.traffic_at.store(traffic_at as u64, Relaxed);
        header.text_at.store(text_at as u64, Relaxed);
        header.text_len.store(about.len() as u64, Relaxed);
        header.process.store(std::process::id().into(), Relaxed);
        let mut figures = Self { file, header, task, written: Instant::now() };
        figures.update(area, true)?;
        figures.header.magic.store(MAGIC, Relaxed);
        figures.write_header()?;
        Ok(figures)
    }

    /// Copies the figures if it is time, or if the caller wants it.
    fn update(&mut self, area: &Area, now: bool) -> io::Result<()> {
        if !now && self.written.elapsed() < Duration::from_nanos(UPDATE_PERIOD) {
            return Ok(());
        }
        self.written = Instant::now();
        for (index, row) in area.rows().iter().enumerate().take(self.header.tasks.load(Relaxed) as usize) {
            // SAFETY: nothing else refers to the figures; they consist of atomics, and zero is
            // valid.
            unsafe { (&raw mut *self.task).write_bytes(0, 1) };
            row.copy(&self.task);
            // SAFETY: the structure consists of atomics without padding, and this thread alone
            // writes it.
            let bytes = unsafe { bytes_of(&*self.task) };
            self.file.write_all_at(bytes, (TASKS_AT + index * size_of::<TaskFigures>()) as u64)?;
        }
        let started = match (area.header.started.load(Relaxed), clock_offset()) {
            (0, _) | (_, None) => 0,
            (started, Some(offset)) => started.wrapping_add(offset),
        };
        self.header.started.store(started, Relaxed);
        self.header.stopping.store(area.header.stopping.load(Relaxed).into(), Relaxed);
        self.header.dropped.store(area.header.dropped.load(Relaxed), Relaxed);
        self.header.updated.store(punctual_sync::now().as_ticks(), Relaxed);
        self.write_header()
    }

    fn finish(mut self, area: &Area) -> io::Result<()> {
        self.update(area, true)?;
        self.header.stopping.store(1, Relaxed);
        self.write_header()
    }

    fn write_header(&self) -> io::Result<()> {
        // SAFETY: the structure consists of atomics without padding, and this thread alone writes
        // it.
        self.file.write_all_at(unsafe { bytes_of(&*self.header) }, 0)
    }
}

/// The bytes of a structure.
///
/// # Safety
/// `value` has no uninitialized padding, and nothing writes to `value` while the bytes are in use.
unsafe fn bytes_of<T>(value: &T) -> &[u8] {
    // SAFETY: the slice covers the structure, which is initialized by this function's contract.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// The constant description of the app, in the form that an app on Linux writes.
fn about(area: &Area, cpu: u32) -> String {
    let partition = text(area.header.partition.get());
    let tasks = area.rows().iter().map(|row| {
        json!({
            "name": text(row.name.get()), "partition": partition, "level": row.level(), "kind": null,
            "period": row.period(), "deadline": row.deadline(), "measured": u64::from(row.is_measured()),
        })
    });
    let about = json!({
        "app": text(area.header.app.get()), "program": null, "punctual": env!("CARGO_PKG_VERSION"),
        "partitions": [{ "name": partition, "cpu": cpu }],
        "tasks": tasks.collect::<Vec<_>>(),
        "kernel": "none: a CPU that Linux gave up", "memory": "", "threads": [], "missing": [], "notes": [],
    });
    about.to_string()
}

/// Writes the jobs that the app leaves into the kernel's trace.
#[derive(Debug)]
struct Marks {
    marker: File,
    jobs: RingConsumer<'static, Words, JOBS>,
    /// The number of the first task in the trace.
    first: u16,
    cpu: u16,
    /// Lost jobs that are in the trace already.
    lost: u64,
    named: Instant,
}

impl Marks {
    fn new(area: &'static Area, cpu: u32, marker: File) -> Result<Self, String> {
        clock_offset().ok_or("its clock cannot be related to that of Linux")?;
        Self::at(area, cpu, marker)
    }

    fn at(area: &'static Area, cpu: u32, marker: File) -> Result<Self, String> {
        let (start, size) = area.jobs();
        // SAFETY: the memory lasts as long as the area, consists of atomics, and holds the ring
        // alone. The area is published, so the ring was made before.
        let ring = unsafe { attach_at::<Ring<Words, JOBS>>(start, size) };
        let ring = ring.map_err(|error| error.to_string())?;
        let jobs = ring.consumer().map_err(|_| "another process takes them")?;
        // Apart from the numbers of neighboring processes, as far as 16 bits allow.
        let first = (std::process::id() as u16).wrapping_mul(64).min(u16::MAX - area.rows().len() as u16);
        let lost = area.header.lost.load(Relaxed);
        let marks = Self { marker, jobs, first, cpu: cpu as u16, lost, named: Instant::now() };
        marks.name(area);
        area.header.wants_jobs.store(1, Relaxed);
        Ok(marks)
    }

    /// Writes a mark. A failure is ignored: the trace may not be recording.
    fn write(&self, bytes: &[u8]) {
        let _ = rustix::io::write(&self.marker, bytes);
    }

    fn name(&self, area: &Area) {
        for (number, row) in (self.first..).zip(area.rows()) {
            self.write(&trace_marker::name(number, &text(row.name.get())));
        }
    }

    fn update(&mut self, area: &Area) {
        if self.named.elapsed() >= TASK_NAMES_INTERVAL {
            self.name(area);
            self.named = Instant::now();
        }
        self.drain(area, clock_offset());
    }

    /// Marks the jobs that have ended, whose times are `offset` less than those of
    /// `CLOCK_MONOTONIC`.
    fn drain(&mut self, area: &Area, offset: Option<u64>) {
        let Some(offset) = offset else { return };
        // At most a full ring, so that the loop ends even if the app adds jobs forever.
        for _ in 0..JOBS {
            let Some(words) = self.jobs.pop() else { break };
            let job = Job::from_words(words);
            let [released, started, ended] =
                [job.released, job.started, job.ended].map(|time| time.wrapping_add(offset));
            let times = OfflineJob { released, started, ended, preempted: job.preempted };
            self.write(&trace_marker::offline_job(self.first.wrapping_add(job.row), self.cpu, times));
        }
        let lost = area.header.lost.load(Relaxed);
        if lost != self.lost {
            self.write(&trace_marker::lost(self.cpu, lost.wrapping_sub(self.lost)));
            self.lost = lost;
        }
    }

    /// Marks the last jobs; returns how many are missing.
    fn finish(mut self, area: &Area) -> u64 {
        self.drain(area, clock_offset());
        area.header.wants_jobs.store(0, Relaxed);
        self.lost
    }
}

/// Difference to add to a time of the other CPU, modulo 2^64, to get one of `CLOCK_MONOTONIC`;
/// `None` if this machine has no such counter.
///
/// Both clocks are made of the counter of the machine, which every CPU reads alike. The difference
/// changes while Linux steers its clock.
fn clock_offset() -> Option<u64> {
    let readings = (0..8).map(|_| {
        let before = counter()?;
        let clock = punctual_sync::now().as_ticks();
        let after = counter()?;
        Some((after - before, clock.wrapping_sub(before + (after - before) / 2)))
    });
    // The reading with the shortest distance is the most precise.
    readings.collect::<Option<Vec<_>>>()?.into_iter().min().map(|(_, offset)| offset)
}

/// The clock of the other CPU, as `punctual-bare` computes it: the counter in ns.
#[cfg(target_arch = "aarch64")]
fn counter() -> Option<u64> {
    let (count, frequency): (u64, u64);
    // SAFETY: Linux lets every process read both registers, which changes nothing. The barrier
    // keeps the counter from being read early.
    unsafe {
        std::arch::asm!("isb", "mrs {}, cntvct_el0", "mrs {}, cntfrq_el0", out(reg) count, out(reg) frequency,
            options(nomem, nostack));
    }
    // With the other CPU's rounding error, which grows with the time since power-on.
    let nanos_per_count = (1_000_000_000_u64 << 32).checked_div(frequency)?;
    Some(((u128::from(count) * u128::from(nanos_per_count)) >> 32) as u64)
}

/// No other processor runs programs without Linux.
#[cfg(not(target_arch = "aarch64"))]
fn counter() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;

    use punctual_core::trace_marker::Mark;
    use punctual_sync::shared::init_at;

    use super::*;

    /// An app with the task `sample`, and the ring of its jobs. Never freed.
    fn app() -> (&'static Area, &'static Ring<Words, JOBS>) {
        // SAFETY: the area consists of atomics; zero is a valid value.
        let area: &'static Area = Box::leak(unsafe { Box::<Area>::new_zeroed().assume_init() });
        let (start, size) = area.jobs();
        // SAFETY: the memory is never freed, and holds the ring alone.
        let ring = unsafe { init_at::<Ring<Words, JOBS>>(start, size, ()) }.unwrap();
        area.declare("app", "control");
        area.all_rows[0].declare("sample", 3, true, Some(100_000), Some(45));
        (area, ring)
    }

    fn contents(file: &File) -> Vec<u8> {
        let mut bytes = Vec::new();
        File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn shows_no_tasks_before_publication() {
        let (area, _) = app();
        let mut observer = Observer::new(area, 2, None);
        assert!(observer.update().is_empty() && observer.figures.is_none());
        area.publish(1);
        assert!(observer.update().is_empty() && observer.figures.is_some());
        assert_eq!(observer.end(), None);
    }

    #[test]
    fn writes_figures_and_description_for_top() {
        let (area, _) = app();
        area.publish(1);
        let job = Job { row: 0, released: 100, started: 110, ended: 150, preempted: 10 };
        // SAFETY: a single thread.
        unsafe { area.rows()[0].record(&job) };
        let figures = Figures::new(area, 2).unwrap();
        let bytes = contents(&figures.file);
        let word = |at: usize| u64::from_ne_bytes(*bytes[at..].first_chunk().unwrap());
        assert_eq!(word(0), MAGIC);
        assert_eq!(word(TASKS_AT), 1, "one job");
        let text_at = figures.header.text_at.load(Relaxed) as usize;
        let about: serde_json::Value = serde_json::from_slice(&bytes[text_at..]).unwrap();
        assert_eq!(about["partitions"], json!([{"name": "control", "cpu": 2}]));
        let task = json!({
            "name": "sample", "partition": "control", "level": 3, "kind": null, "period": 100_000, "deadline": 45, "measured": 1
        });
        assert_eq!((&about["app"], &about["tasks"]), (&json!("app"), &json!([task])));
    }

    #[test]
    fn marks_jobs_with_their_own_times_and_counts_lost_ones() {
        let (area, ring) = app();
        area.publish(1);
        let file = File::from(memfd_create("marks", MemfdFlags::CLOEXEC).unwrap());
        let mut marks = Marks::at(area, 2, file.try_clone().unwrap()).unwrap();
        let names = contents(&file).len();
        assert_eq!(area.header.wants_jobs.load(Relaxed), 1);
        let mut producer = ring.producer().unwrap();
        let job = Job { row: 0, released: 100, started: 110, ended: 150, preempted: 10 };
        producer.push(job.to_words()).unwrap();
        marks.drain(area, None);
        assert_eq!(contents(&file).len(), names, "no clock, no marks");
        marks.drain(area, Some(1_000));
        let mark = |bytes: &[u8]| {
            let id = u32::from_ne_bytes(*bytes.first_chunk().unwrap());
            format!("{:?}", Mark::read(id, &bytes[4..], cfg!(target_endian = "big")).unwrap())
        };
        let times = OfflineJob { released: 1_100, started: 1_110, ended: 1_150, preempted: 10 };
        let expected = Mark::OfflineJob { task: marks.first, cpu: 2, job: times };
        let bytes = contents(&file);
        assert_eq!(mark(&bytes[names..]), format!("{expected:?}"));
        assert_eq!(bytes.len(), names + 40);
        while producer.push(job.to_words()).is_ok() {}
        area.header.lost.store(3, Relaxed);
        marks.drain(area, Some(0));
        marks.drain(area, Some(0));
        let bytes = contents(&file);
        assert_eq!(bytes.len(), names + 40 * (1 + JOBS) + 16, "the loss is marked once");
        assert_eq!(mark(&bytes[bytes.len() - 16..]), format!("{:?}", Mark::Lost { cpu: 2, count: 3 }));
        assert_eq!(marks.finish(area), 3);
    }
}
