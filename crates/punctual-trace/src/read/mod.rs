//! Reading of traces: from files and directories to [events](crate::event), in order of time.
//!
//! Each layer uses only the layers below it. [`mod@format`] describes binary layouts, [`page`]
//! decodes pages into records, [`translate`] converts records to events, [`merge`] merges the CPUs,
//! and [`dat`] and [`raw`] locate everything in a file or a directory. [`Trace`] combines them:
//!
//! ```no_run
//! use punctual_trace::event::Kind;
//! use punctual_trace::read::Trace;
//!
//! let trace = Trace::open("trace.dat".as_ref())?;
//! let mut events = trace.events()?;
//! let mut switches = 0;
//! while let Some(event) = events.next() {
//!     match event {
//!         Ok(event) => switches += u64::from(matches!(event.kind, Kind::Switch { .. })),
//!         Err(problem) => eprintln!("{problem}"), // the data of one CPU ends here, the others go on
//!     }
//! }
//! println!("{switches} switches between {} threads", events.threads().iter().count());
//! # Ok::<(), punctual_trace::read::ReadError>(())
//! ```

pub(crate) mod clock;
mod ctf;
pub mod dat;
mod error;
mod expansion;
pub mod marker;
pub mod merge;
pub(crate) mod perf;
pub mod raw;
pub(crate) mod records;
mod stream;
pub mod translate;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::clock::counted;
pub use self::error::{Place, ReadError};
use self::expansion::Unpacked;
use self::merge::{Merge, Source as _};
use self::stream::{CpuStream, Input, Scale};
use self::translate::{Calls, Interrupts, Threads, Translator};
use crate::event::{Event, Tid};
use crate::format::dat::{PROCESS, Part, RESERVATION};
use crate::format::fields::{EventFormat, FormatError, PageLayout};
use crate::format::recipe::recipe;
pub use crate::format::{Bytes, Order, Range, fields as format, page};
use crate::jobs::Reservation;
use crate::recorded::{Recorded, Source};

/// The limit in bytes for the pages of all CPUs together.
const PAGES_BUDGET: usize = 256 << 20;

/// An open trace.
///
/// ```no_run
/// use punctual_trace::read::Trace;
///
/// let trace = Trace::open("trace.dat".as_ref())?;
/// println!("{} CPUs, clock {}", trace.cpus(), trace.clock());
/// for event in trace.events()? {
///     println!("{:?}", event?);
/// }
/// # Ok::<(), punctual_trace::read::ReadError>(())
/// ```
pub struct Trace {
    pub(crate) file: Arc<str>,
    pub(crate) layout: PageLayout,
    formats: Vec<EventFormat>,
    unreadable: Vec<(String, FormatError)>,
    buffers: Vec<Buffer>,
    pub(crate) threads: Vec<u8>,
    pub(crate) functions: dat::Functions,
    clock: String,
    system: String,
    statistics: Vec<String>,
    scale: Option<Scale>,
    /// The recorder's declaration of its events: see [`Recorded::declared`].
    declared: Option<String>,
    damage: Vec<String>,
    recorder: Recorder,
    /// Number of perf samples of other events than tracepoints.
    other_samples: u64,
}

/// Program that made a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorder {
    /// `punctual trace record`.
    Punctual,
    /// `trace-cmd record`.
    TraceCmd,
    /// `perf record`, or simpleperf.
    Perf,
    /// LTTng.
    Lttng,
}

impl Recorder {
    /// Returns advice for a recording that loses fewer events.
    #[must_use]
    pub fn more_room(self) -> &'static str {
        match self {
            Self::Punctual => "with a larger --buffer, fewer --events or --narrow",
            Self::TraceCmd => "with larger buffers, as `trace-cmd record -b 20000` has them, or fewer events",
            Self::Perf => "with larger buffers, as `perf record -m 16M` has them, or fewer events",
            Self::Lttng => {
                "with larger buffers, as `lttng enable-channel --kernel --subbuf-size 4M` has them, or fewer events"
            }
        }
    }
}

/// A ring buffer of the kernel, with data of each CPU.
#[derive(Debug, Clone)]
pub struct Buffer {
    /// The name of its tracing instance; empty for the top-level one.
    pub name: String,
    /// Its trace clock.
    pub clock: String,
    pub(crate) page_size: Option<usize>,
    pub(crate) cpus: Vec<CpuData>,
}

impl Buffer {
    /// Returns the CPUs with data.
    pub fn cpus(&self) -> impl Iterator<Item = u16> {
        self.cpus.iter().map(|data| data.cpu)
    }
}

/// The data of one CPU, not yet read.
#[derive(Clone)]
pub(crate) struct CpuData {
    pub(crate) cpu: u16,
    pub(crate) file: Arc<str>,
    pub(crate) bytes: Arc<dyn Bytes>,
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) packed: Option<dat::Packing>,
}

impl std::fmt::Debug for CpuData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CPU {}: {} bytes at {}", self.cpu, self.length, self.start)
    }
}

impl CpuData {
    /// `unpacked` counts the bytes of all CPUs of a pass over the file.
    pub(crate) fn input(&self, scale: Option<Scale>, unpacked: &Unpacked) -> Input {
        let range = Range::new(self.bytes.clone(), self.start, self.start.saturating_add(self.length));
        let (read, start, length): (Box<dyn io::Read + Send>, _, _) = match self.packed {
            None => (Box::new(range), Some(self.start), Some(self.length)),
            Some(packing) => (Box::new(dat::Chunks::new(range, packing, unpacked.clone())), None, None),
        };
        Input { file: self.file.clone(), cpu: self.cpu, read, start, length, scale }
    }
}

impl Part for CpuData {
    fn path(&self) -> PathBuf {
        PathBuf::from(&*self.file)
    }

    fn read(&self) -> Box<dyn io::Read + Send> {
        self.input(None, &Unpacked::default()).read
    }
}

impl Trace {
    /// Opens a trace.dat or perf.data file, a directory that was recorded, one of `perf record
    /// --threads`, or one of LTTng.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let open = |error| ReadError::Open { path: path.to_owned(), error };
        if std::fs::metadata(path).map_err(open)?.is_dir() {
            return match ctf::find(path) {
                Some(path) => ctf::open(&path),
                None if perf::is_directory(path) => perf::open_directory(path),
                None => raw::open(path),
            };
        }
        let file = std::fs::File::open(path).map_err(open)?;
        Self::from_bytes(&path.display().to_string(), Arc::new(file))
    }

    /// Opens a trace from any [`Bytes`]; errors refer to it as `name`.
    pub fn from_bytes(name: &str, bytes: Arc<dyn Bytes>) -> Result<Self, ReadError> {
        let mut start = [0; 8];
        let read = bytes.read_at(0, &mut start);
        let length = read.map_err(|error| ReadError::Io { file: name.into(), offset: 0, error })?;
        match perf::is_perf(&start[..length]) {
            true => perf::open(name.into(), bytes),
            false => dat::open(name.into(), bytes),
        }
    }

    /// Opens an LTTng trace in memory or elsewhere: its metadata file, and the files of its streams
    /// with their names for errors.
    pub fn from_ctf(
        name: &str,
        metadata: &[u8],
        streams: Vec<(Arc<str>, Arc<dyn Bytes>)>,
    ) -> Result<Self, ReadError> {
        ctf::read(name.into(), metadata, streams)
    }

    /// Returns the events, ordered by time, then by CPU.
    ///
    /// An error ends the data of its CPU; the events of the other CPUs continue.
    ///
    /// # Errors
    /// Returns [`ReadError::Clock`] if the times cannot be converted to ns.
    pub fn events(&self) -> Result<Events, ReadError> {
        self.events_of(|_| true)
    }

    /// Returns the events of the selected buffers.
    pub fn events_of(&self, buffers: impl Fn(&Buffer) -> bool) -> Result<Events, ReadError> {
        let (translator, streams) = self.streams(buffers)?;
        Ok(Events { merge: Merge::new(translator, streams) })
    }

    /// Returns the events of each CPU of the selected buffers, in the order of CPUs, and their
    /// translator.
    fn streams(&self, buffers: impl Fn(&Buffer) -> bool) -> Result<(Translator, Vec<CpuStream>), ReadError> {
        let chosen = || self.buffers.iter().filter(|buffer| buffers(buffer));
        self.check_clocks(chosen())?;
        let streams = chosen().map(|buffer| buffer.cpus.len()).sum();
        let (mut inputs, unpacked) = (Vec::new(), Unpacked::default());
        let mut pages = 0;
        for buffer in chosen() {
            let unsupported =
                |error: FormatError| ReadError::Format { file: self.file.clone(), offset: 0, error };
            let layout = match buffer.page_size {
                Some(size) => self.layout.with_size(size).map_err(unsupported)?,
                None => self.layout,
            };
            // The file may contain a scale although the trace has another clock.
            let scale = self.scale.filter(|_| counted(self.clock_of(buffer)).is_some());
            for data in &buffer.cpus {
                pages += layout.size;
                inputs.push((data.cpu, CpuStream::new(data.input(scale, &unpacked), layout, streams)));
            }
        }
        if pages > PAGES_BUDGET {
            let what = format!(
                "{streams} CPUs with pages of {} bytes each would need too much memory; choose a buffer",
                pages / streams
            );
            return Err(ReadError::Unsupported { file: self.file.clone(), offset: 0, what });
        }
        inputs.sort_by_key(|(cpu, _)| *cpu);
        let mut translator = Translator::new(self.layout.order, &self.formats, &self.functions.schedule);
        translator.set_budget_timer(self.functions.budget_timer);
        translator.threads_mut().insert_lines(&self.threads);
        Ok((translator, inputs.into_iter().map(|(_, stream)| stream).collect()))
    }

    /// Returns which events it contains if they occurred: the declaration of its recorder, such as
    /// this crate's. For other recordings the formats show only which events are possible, and the
    /// presence of an event shows that it was recorded, so the events are read until all possible
    /// ones have occurred.
    ///
    /// # Errors
    /// Returns an error if a page size is not supported. Ignores unreadable data.
    pub fn recorded(&self) -> Result<Recorded, ReadError> {
        if let Some(text) = &self.declared {
            return Ok(Recorded::declared(text));
        }
        let names = self.formats.iter().map(|format| format!("{}:{}\n", format.system, format.name));
        let mut possible = Recorded::declared(&names.collect::<String>());
        if self.functions.schedule.is_empty() {
            // Every kernel lists the format of function calls.
            possible = possible.without(Source::Scheduler);
        }
        let mut seen = Recorded::none();
        let (mut translator, streams) = self.streams(|_| true)?;
        let mut events = Vec::new();
        for mut stream in streams {
            while !seen.covers(&possible) {
                events.clear();
                match stream.refill(&mut translator, &mut events) {
                    Ok(()) if !events.is_empty() => events.iter().for_each(|event| seen.see(event)),
                    _ => break,
                }
            }
        }
        // Only x86 has vectors in addition to its interrupts. LTTng does not record the processor.
        let x86 = ["x86", "i386", "i486", "i586", "i686", "amd64"];
        let is_known = !self.system.is_empty() && self.recorder != Recorder::Lttng;
        if is_known && !x86.iter().any(|name| self.system.contains(name)) {
            seen = seen.with(Source::Vectors);
        }
        Ok(seen)
    }

    /// Returns the ring buffers.
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// Returns the number of CPUs with data.
    pub fn cpus(&self) -> usize {
        let mut cpus: Vec<_> = self.buffers.iter().flat_map(Buffer::cpus).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus.len()
    }

    /// Returns the trace clock, `mono` for CLOCK_MONOTONIC; empty if the trace names none.
    pub fn clock(&self) -> &str {
        &self.clock
    }

    /// Returns the traced system, as from `uname`, or an empty string.
    pub fn system(&self) -> &str {
        &self.system
    }

    /// Returns the kernel's statistics of each CPU's buffer.
    pub fn statistics(&self) -> &[String] {
        &self.statistics
    }

    /// Returns the process of each thread that the recorder saw.
    pub fn processes(&self) -> impl Iterator<Item = (Tid, Tid)> {
        let lines = self.declared.iter().flat_map(|text| text.lines());
        lines.filter_map(|line| {
            let (thread, process) = line.strip_prefix(PROCESS)?.split_once(' ')?;
            Some((thread.parse().ok()?, process.parse().ok()?))
        })
    }

    /// Returns the reservations of the SCHED_DEADLINE threads that the recorder saw.
    pub fn reservations(&self) -> impl Iterator<Item = (Tid, Reservation)> {
        let lines = self.declared.iter().flat_map(|text| text.lines());
        lines.filter_map(|line| {
            let mut numbers = line.strip_prefix(RESERVATION)?.split(' ').map(str::parse::<u64>);
            let mut next = || numbers.next()?.ok();
            let thread = next()?.try_into().ok()?;
            Some((thread, Reservation { runtime: next()?, deadline: next()?, period: next()? }))
        })
    }

    /// Returns descriptions of missing or guessed parts of the file.
    pub fn damage(&self) -> &[String] {
        &self.damage
    }

    /// Returns the program that made the recording.
    pub fn recorder(&self) -> Recorder {
        self.recorder
    }

    /// Returns the number of records skipped in `events` because the analysis does not know their
    /// event, by its name.
    pub fn skipped(&self, events: &Events) -> Vec<(String, u64)> {
        let others = (self.other_samples > 0).then(|| ("no tracepoint".to_owned(), self.other_samples));
        events.skipped_names(&self.formats).into_iter().chain(others).collect()
    }

    /// Returns the formats of the events.
    pub fn formats(&self) -> &[EventFormat] {
        &self.formats
    }

    /// Returns the events whose formats could not be parsed; their records are skipped.
    pub fn unreadable(&self) -> &[(String, FormatError)] {
        &self.unreadable
    }

    /// Returns those of them that the analysis needs, as `group:event`.
    pub fn unusable(&self) -> impl Iterator<Item = (&str, &FormatError)> {
        let used =
            |event: &str| event.split_once(':').is_some_and(|(group, name)| recipe(group, name).is_some());
        self.unreadable
            .iter()
            .map(|(event, error)| (event.as_str(), error))
            .filter(move |(event, _)| used(event))
    }
}

/// Iterates over the events of a trace, in order.
pub struct Events {
    merge: Merge<CpuStream>,
}

impl Events {
    /// Includes events unknown to the analysis, as [`Kind::Other`](crate::event::Kind::Other), for
    /// display.
    #[must_use]
    pub fn with_others(mut self) -> Self {
        self.merge.context_mut().want_others();
        self
    }

    /// Returns the names of threads, as far as the events so far contain them.
    pub fn threads(&self) -> &Threads {
        self.merge.context().threads()
    }

    /// Returns the names of interrupts, as far as the events so far contain them.
    pub fn interrupts(&self) -> &Interrupts {
        self.merge.context().interrupts()
    }

    /// Returns the names of system calls, as far as the events so far contain them.
    pub fn calls(&self) -> &Calls {
        self.merge.context().calls()
    }

    /// Returns the names of tasks of Punctual apps, as far as the events so far contain them.
    pub fn tasks(&self) -> &marker::Tasks {
        self.merge.context().tasks()
    }

    /// Returns how many records were skipped so far because their event is unknown to the analysis,
    /// by event ID.
    pub fn skipped(&self) -> impl Iterator<Item = (u16, u64)> {
        self.merge.context().skipped()
    }

    /// Returns the same counts, by the names in the formats.
    fn skipped_names(&self, formats: &[EventFormat]) -> Vec<(String, u64)> {
        let name = |id: u16| {
            let format = formats.iter().find(|format| format.id == id);
            format.map_or(format!("event {id}"), |format| format!("{}:{}", format.system, format.name))
        };
        self.skipped().map(|(id, count)| (name(id), count)).collect()
    }

    /// Returns the events that are skipped although the analysis needs them, because the kernel's
    /// event lacks a field.
    pub fn incomplete(&self) -> &[String] {
        self.merge.context().incomplete()
    }
}

impl Events {
    /// Returns the next events, all of one CPU: as many as precede those of the others. Processing
    /// events in these runs is faster.
    #[inline]
    pub fn next_run(&mut self) -> Option<Result<&[Event], ReadError>> {
        self.merge.next_run()
    }
}

impl Iterator for Events {
    type Item = Result<Event, ReadError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.merge.next()
    }
}
