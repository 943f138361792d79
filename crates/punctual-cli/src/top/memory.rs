//! Reads the memory in which an app exports its figures.
//!
//! It is copied rather than mapped, so it may change or shrink at any time. Its contents are not
//! trusted: they may be of another version, or of a foreign program.

use std::fmt;
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use punctual_core::metrics::{
    BUCKETS, Figure, Header, MAGIC, MAX_TRAFFIC, MAX_TRAFFIC_NAME, Quantity as Layout, TaskFigures, Term,
    TermRow, TrafficFigures, UPDATE_PERIOD, VERSION, Values,
};
use punctual_report::escape::Printable;
use rustix::fs::SealFlags;
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;

use super::find::Found;

/// More than any app has.
const MAX_TASKS: usize = 4096;
const MAX_TEXT: usize = 4 << 20;
/// Maximum length of a name that occurs in every line about a task, in bytes.
const MAX_NAME: usize = 255;
/// The distance from one task's figures to the next, which the version determines.
const STRIDE: usize = size_of::<TaskFigures>();

/// Reason why an app cannot be shown.
#[derive(Debug)]
pub(crate) enum Unreadable {
    /// It has ended.
    Gone,
    /// It is starting.
    NotYet,
    System(io::Error),
    Version(u32),
    /// An error in the memory.
    Invalid(String),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("it has ended"),
            Self::NotYet => f.write_str("it is starting"),
            Self::System(error) => write!(f, "its memory cannot be read: {error}"),
            Self::Version(version) => write!(
                f,
                "its memory is of version {version}, and this program reads version {VERSION}; use the `punctual` of the app's release"
            ),
            Self::Invalid(what) => write!(f, "its memory is damaged, or not that of an app: {what}"),
        }
    }
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Gone,
            _ => Self::System(error),
        }
    }
}

/// Data that does not change while the app runs.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct About {
    pub(crate) app: String,
    pub(crate) program: Option<String>,
    pub(crate) punctual: String,
    pub(crate) partitions: Vec<Partition>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) kernel: String,
    pub(crate) memory: String,
    pub(crate) threads: Vec<Thread>,
    /// Missing settings, each with the remedy.
    pub(crate) missing: Vec<String>,
    pub(crate) notes: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Partition {
    pub(crate) name: String,
    pub(crate) cpu: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Task {
    pub(crate) name: String,
    pub(crate) partition: String,
    pub(crate) level: u64,
    pub(crate) period: Option<u64>,
    pub(crate) deadline: Option<u64>,
    measured: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Thread {
    pub(crate) name: String,
    pub(crate) policy: String,
    pub(crate) priority: u64,
    pub(crate) cpus: String,
}

impl Task {
    pub(crate) fn is_measured(&self) -> bool {
        self.measured != 0
    }

    #[cfg(test)]
    pub(crate) fn unmeasure(&mut self) {
        self.measured = 0;
    }
}

impl About {
    fn parse(bytes: &[u8]) -> Result<Self, Unreadable> {
        let mut about: Self = serde_json::from_slice(bytes)
            .map_err(|error| Unreadable::Invalid(format!("its description: {error}")))?;
        about.texts().for_each(|text| *text = Printable(text).to_string());
        if about.names().any(|name| name.len() > MAX_NAME) {
            return Err(Unreadable::Invalid("the length of a name".to_owned()));
        }
        Ok(about)
    }

    /// Returns the names of the app, its program, its partitions and its tasks.
    fn names(&self) -> impl Iterator<Item = &String> {
        let partitions = self.partitions.iter().map(|partition| &partition.name);
        let tasks = self.tasks.iter().flat_map(|task| [&task.name, &task.partition]);
        [&self.app].into_iter().chain(&self.program).chain(partitions).chain(tasks)
    }

    /// Returns all texts that are shown verbatim.
    fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let Self { app, program, punctual, partitions, tasks, kernel, memory, threads, missing, notes } =
            self;
        let single = [app, punctual, kernel, memory].into_iter().chain(program);
        let partitions = partitions.iter_mut().map(|partition| &mut partition.name);
        let tasks = tasks.iter_mut().flat_map(|task| [&mut task.name, &mut task.partition]);
        let threads = threads.iter_mut().flat_map(|t| [&mut t.name, &mut t.policy, &mut t.cpus]);
        single.chain(partitions).chain(tasks).chain(threads).chain(missing).chain(notes)
    }
}

/// The figures of an app at one time.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub(crate) at: Instant,
    /// Start of the app and last update by its supervisor, in ns of `CLOCK_MONOTONIC`.
    pub(crate) started: u64,
    pub(crate) updated: u64,
    /// The time since then, in ns.
    pub(crate) age: u64,
    pub(crate) stopping: bool,
    pub(crate) dropped: u64,
    /// Starts of helper processes, and ends that the app had not requested.
    pub(crate) helper_starts: u64,
    pub(crate) helper_ends: u64,
    pub(crate) tasks: Vec<Figures>,
    pub(crate) traffic: Vec<Traffic>,
}

impl Snapshot {
    /// Returns true if the app has not updated its figures for two periods: it is stopped, or its
    /// ordinary threads do not run.
    pub(crate) fn is_stale(&self) -> bool {
        self.age > 2 * UPDATE_PERIOD
    }
}

/// `CLOCK_MONOTONIC`, in ns.
fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Messages that are carried in or out, under one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) name: String,
    pub(crate) carried: u64,
    pub(crate) lost: u64,
    pub(crate) refused: u64,
}

/// The figures of a task since the start of the app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Figures {
    /// In the order of [`Figure::ALL`].
    pub(crate) numbers: [u64; Figure::ALL.len()],
    /// In the order of [`Term::ALL`].
    pub(crate) terms: [Quantity; Term::ALL.len()],
}

impl Figures {
    pub(crate) fn number(&self, figure: Figure) -> u64 {
        self.numbers[figure as usize]
    }

    pub(crate) fn term(&self, term: Term) -> &Quantity {
        &self.terms[term as usize]
    }
}

/// One quantity over all jobs of a task, in ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Quantity {
    pub(crate) last: u64,
    pub(crate) max: u64,
    pub(crate) sum: u64,
    pub(crate) counts: Vec<u32>,
}

/// The memory of an app, opened.
#[derive(Debug)]
pub(crate) struct Memory {
    found: Found,
    file: File,
    tasks_at: u64,
    traffic_at: u64,
    pub(crate) about: About,
    /// The memory of all tasks.
    bytes: Vec<u8>,
}

impl Memory {
    /// Opens the memory of an app.
    pub(crate) fn open(found: &Found) -> Result<Self, Unreadable> {
        let file = found.open()?;
        // Every app seals its memory. A file that can shrink, or that is not anonymous, was created
        // by another program.
        let size = SealFlags::SHRINK | SealFlags::GROW;
        if !rustix::fs::fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(size)) {
            return Err(Unreadable::Invalid("its size is not sealed".to_owned()));
        }
        Self::of(file, found.clone())
    }

    fn of(file: File, found: Found) -> Result<Self, Unreadable> {
        let invalid = |what: &str| Err(Unreadable::Invalid(what.to_owned()));
        let size = file.metadata()?.len();
        let mut head = [0; size_of::<Header>()];
        if size < head.len() as u64 {
            return invalid("it is too short for a header");
        }
        read(&file, &mut head, 0)?;
        match word(&head, offset_of!(Header, magic)) {
            MAGIC => {}
            0 => return Err(Unreadable::NotYet),
            _ => return invalid("it does not begin with the mark of an app's memory"),
        }
        // The version comes first, because it determines the meaning of the rest.
        let version = half(&head, offset_of!(Header, version));
        if version != VERSION {
            return Err(Unreadable::Version(version));
        }
        let tasks = half(&head, offset_of!(Header, tasks)) as usize;
        let tasks_at = word(&head, offset_of!(Header, tasks_at));
        let stride = word(&head, offset_of!(Header, stride));
        let traffic_at = word(&head, offset_of!(Header, traffic_at));
        let text_at = word(&head, offset_of!(Header, text_at));
        let text_len = word(&head, offset_of!(Header, text_len));
        if tasks > MAX_TASKS || stride != STRIDE as u64 {
            return invalid("the size or the number of its tasks");
        }
        let fits = |at: u64, len: u64| at.checked_add(len).is_some_and(|end| end <= size);
        let traffic = (MAX_TRAFFIC * size_of::<TrafficFigures>()) as u64;
        if !fits(tasks_at, tasks as u64 * stride)
            || !fits(traffic_at, traffic)
            || !fits(text_at, text_len)
            || text_len > MAX_TEXT as u64
        {
            return invalid("its parts exceed it");
        }
        let mut text = vec![0; text_len as usize];
        read(&file, &mut text, text_at)?;
        let about = About::parse(&text)?;
        if about.tasks.len() != tasks {
            return invalid("its description has a different number of tasks");
        }
        Ok(Self { found, file, tasks_at, traffic_at, about, bytes: vec![0; tasks * STRIDE] })
    }

    /// Returns the app of the memory.
    pub(crate) fn found(&self) -> &Found {
        &self.found
    }

    /// Reads all figures.
    pub(crate) fn snapshot(&mut self) -> Result<Snapshot, Unreadable> {
        if !self.found.is_there() {
            return Err(Unreadable::Gone);
        }
        self.read()
    }

    fn read(&mut self) -> Result<Snapshot, Unreadable> {
        let mut head = [0; size_of::<Header>()];
        read(&self.file, &mut head, 0)?;
        read(&self.file, &mut self.bytes, self.tasks_at)?;
        let updated = word(&head, offset_of!(Header, updated));
        let count = word(&head, offset_of!(Header, traffic)).min(MAX_TRAFFIC as u64) as usize;
        let mut traffic = vec![0; count * size_of::<TrafficFigures>()];
        read(&self.file, &mut traffic, self.traffic_at)?;
        Ok(Snapshot {
            at: Instant::now(),
            started: word(&head, offset_of!(Header, started)),
            updated,
            age: monotonic().saturating_sub(updated),
            stopping: word(&head, offset_of!(Header, stopping)) != 0,
            dropped: word(&head, offset_of!(Header, dropped)),
            helper_starts: word(&head, offset_of!(Header, helper_starts)),
            helper_ends: word(&head, offset_of!(Header, helper_ends)),
            tasks: self.bytes.chunks_exact(STRIDE).map(figures).collect(),
            traffic: traffic.chunks_exact(size_of::<TrafficFigures>()).map(of_traffic).collect(),
        })
    }
}

fn read(file: &File, bytes: &mut [u8], at: u64) -> Result<(), Unreadable> {
    file.read_exact_at(bytes, at).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Unreadable::Invalid("it has become shorter".to_owned()),
        _ => error.into(),
    })
}

/// Parses the figures of a task.
fn figures(bytes: &[u8]) -> Figures {
    let values = |offset| Values {
        last: word(bytes, offset + offset_of!(Layout, last)),
        max: word(bytes, offset + offset_of!(Layout, max)),
        sum: word(bytes, offset + offset_of!(Layout, sum)),
    };
    let count = |histogram, bucket: usize| half(bytes, histogram + 4 * bucket);
    let undisturbed = values(offset_of!(TaskFigures, undisturbed));
    let undisturbed_count = |bucket| count(offset_of!(TaskFigures, undisturbed_times), bucket);
    let quantity = |term: Term| {
        let TermRow { offset, histogram, .. } = term.row();
        let Values { last, max, sum } = term.combine(values(offset), undisturbed);
        let of_all = |bucket| term.combine_count(bucket, count(histogram, bucket), undisturbed_count);
        Quantity { last, max, sum, counts: (0..BUCKETS).map(of_all).collect() }
    };
    Figures {
        numbers: Figure::ALL.map(|figure| word(bytes, figure.row().offset)),
        terms: Term::ALL.map(quantity),
    }
}

fn of_traffic(bytes: &[u8]) -> Traffic {
    let name = &bytes[offset_of!(TrafficFigures, name)..][..MAX_TRAFFIC_NAME];
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    Traffic {
        name: Printable(&String::from_utf8_lossy(name)).to_string(),
        carried: word(bytes, offset_of!(TrafficFigures, carried)),
        lost: word(bytes, offset_of!(TrafficFigures, lost)),
        refused: word(bytes, offset_of!(TrafficFigures, refused)),
    }
}

/// Returns the 8-byte word at `at`.
fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("it has 8 bytes"))
}

/// Returns the 4-byte word at `at`.
fn half(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("it has 4 bytes"))
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
