//! A trace that has been opened: what is said about it, and its events.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::clock::counted;
use super::error::ReadError;
use super::format::{EventFormat, FormatError, PageLayout};
use super::merge::{Merge, Source as _};
use super::raw::{PROCESS, RESERVATION};
use super::stream::{CpuStream, Input, Scale};
use super::translate::{Calls, Interrupts, Threads, Translator, recipe};
use super::{Bytes, Order, Range, dat, marker, perf, raw};
use crate::event::{Event, Tid};
use crate::jobs::Reservation;
use crate::recorded::{Recorded, Source};

/// All CPUs together may hold pages of that many bytes.
const PAGES_BUDGET: usize = 256 << 20;

/// A trace that has been opened.
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
    pub(super) file: Arc<str>,
    pub(super) layout: PageLayout,
    pub(super) formats: Vec<EventFormat>,
    pub(super) unreadable: Vec<(String, FormatError)>,
    pub(super) buffers: Vec<Buffer>,
    pub(super) threads: Vec<u8>,
    pub(super) functions: dat::Functions,
    pub(super) clock: String,
    pub(super) system: String,
    pub(super) statistics: Vec<String>,
    pub(super) scale: Option<Scale>,
    /// What its recorder says about which events it has: see [`Recorded::declared`].
    pub(super) declared: Option<String>,
    pub(super) damage: Vec<String>,
}

/// One ring buffer of the kernel, which has data of each CPU.
#[derive(Debug, Clone)]
pub struct Buffer {
    /// The name of its tracing instance, empty for the one that every system has.
    pub name: String,
    /// The clock of its times.
    pub clock: String,
    pub(super) page_size: Option<usize>,
    pub(super) cpus: Vec<CpuData>,
}

impl Buffer {
    /// The CPUs that it has data of.
    pub fn cpus(&self) -> impl Iterator<Item = u16> {
        self.cpus.iter().map(|data| data.cpu)
    }
}

/// The data of one CPU, not yet read.
#[derive(Clone)]
pub(crate) struct CpuData {
    pub(super) cpu: u16,
    pub(crate) file: Arc<str>,
    pub(super) bytes: Arc<dyn Bytes>,
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) packed: Option<(dat::Algorithm, Order)>,
}

impl std::fmt::Debug for CpuData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CPU {}: {} bytes at {}", self.cpu, self.length, self.start)
    }
}

impl CpuData {
    pub(crate) fn input(&self, scale: Option<Scale>) -> Input {
        let range = Range::new(self.bytes.clone(), self.start, self.start.saturating_add(self.length));
        let (read, start, length): (Box<dyn io::Read + Send>, _, _) = match self.packed {
            None => (Box::new(range), Some(self.start), Some(self.length)),
            Some((algorithm, order)) => (Box::new(dat::Chunks::new(range, algorithm, order)), None, None),
        };
        Input { file: self.file.clone(), cpu: self.cpu, read, start, length, scale }
    }
}

impl Trace {
    /// Opens a trace.dat or perf.data file, or a directory that was recorded.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let open = |error| ReadError::Open { path: path.to_owned(), error };
        if std::fs::metadata(path).map_err(open)?.is_dir() {
            return raw::open(path);
        }
        let file = std::fs::File::open(path).map_err(open)?;
        Self::from_bytes(&path.display().to_string(), Arc::new(file))
    }

    /// Opens a file that is in memory or elsewhere; `name` is what errors call it.
    pub fn from_bytes(name: &str, bytes: Arc<dyn Bytes>) -> Result<Self, ReadError> {
        let mut start = [0; 8];
        let read = bytes.read_at(0, &mut start);
        let length = read.map_err(|error| ReadError::Io { file: name.into(), offset: 0, error })?;
        match perf::is_perf(&start[..length]) {
            true => perf::open(name.into(), bytes),
            false => dat::open(name.into(), bytes),
        }
    }

    /// Its events, in the order of time and then of CPUs.
    ///
    /// An error ends the data of the CPU that it is about, and the events of the others go on.
    ///
    /// # Errors
    /// [`ReadError::Clock`] if the times are no ns and cannot be made ns.
    pub fn events(&self) -> Result<Events, ReadError> {
        self.events_of(|_| true)
    }

    /// The events of those of its buffers.
    pub fn events_of(&self, buffers: impl Fn(&Buffer) -> bool) -> Result<Events, ReadError> {
        let (translator, streams) = self.streams(buffers)?;
        Ok(Events { merge: Merge::new(translator, streams) })
    }

    /// The events of each CPU of those buffers, in the order of CPUs, and what translates them.
    fn streams(&self, buffers: impl Fn(&Buffer) -> bool) -> Result<(Translator, Vec<CpuStream>), ReadError> {
        let chosen = || self.buffers.iter().filter(|buffer| buffers(buffer));
        self.check_clocks(chosen())?;
        let streams = chosen().map(|buffer| buffer.cpus.len()).sum();
        let mut inputs = Vec::new();
        let mut pages = 0;
        for buffer in chosen() {
            let unsupported =
                |error: FormatError| ReadError::Format { file: self.file.clone(), offset: 0, error };
            let layout = match buffer.page_size {
                Some(size) => self.layout.with_size(size).map_err(unsupported)?,
                None => self.layout,
            };
            // A trace of another clock may have the scale all the same.
            let scale = self.scale.filter(|_| counted(self.clock_of(buffer)).is_some());
            for data in &buffer.cpus {
                pages += layout.size;
                inputs.push((data.cpu, CpuStream::new(data.input(scale), layout, streams)));
            }
        }
        if pages > PAGES_BUDGET {
            let what = format!(
                "{streams} CPUs with pages of {} bytes each would need more memory than is good; choose a buffer",
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

    /// Which events it has if they happened: what its recorder declared, as ours does. Of other recordings the formats say
    /// only what could have been recorded, and what of that was is known by its being there, so the events are read until
    /// all of it has been seen.
    ///
    /// # Errors
    /// When a page size is not supported. Data that cannot be read says nothing.
    pub fn recorded(&self) -> Result<Recorded, ReadError> {
        if let Some(text) = &self.declared {
            return Ok(Recorded::declared(text));
        }
        let names = self.formats.iter().map(|format| format!("{}:{}\n", format.system, format.name));
        let mut possible = Recorded::declared(&names.collect::<String>());
        if self.functions.schedule.is_empty() {
            // Every system has the format of calls of functions.
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
        // Only x86 has vectors beside its interrupts.
        let x86 = ["x86", "i386", "i486", "i586", "i686", "amd64"];
        if !self.system.is_empty() && !x86.iter().any(|name| self.system.contains(name)) {
            seen = seen.with(Source::Vectors);
        }
        Ok(seen)
    }

    /// Its ring buffers.
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// How many CPUs there is data of.
    pub fn cpus(&self) -> usize {
        let mut cpus: Vec<_> = self.buffers.iter().flat_map(Buffer::cpus).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus.len()
    }

    /// The clock of its times, `mono` for CLOCK_MONOTONIC, or nothing if it does not say.
    pub fn clock(&self) -> &str {
        &self.clock
    }

    /// The system that was traced, as `uname` has it, or nothing.
    pub fn system(&self) -> &str {
        &self.system
    }

    /// What the kernel counted for each CPU while it recorded.
    pub fn statistics(&self) -> &[String] {
        &self.statistics
    }

    /// Which process each thread is of, as far as the recorder saw.
    pub fn processes(&self) -> impl Iterator<Item = (Tid, Tid)> {
        let lines = self.declared.iter().flat_map(|text| text.lines());
        lines.filter_map(|line| {
            let (thread, process) = line.strip_prefix(PROCESS)?.split_once(' ')?;
            Some((thread.parse().ok()?, process.parse().ok()?))
        })
    }

    /// What SCHED_DEADLINE threads have reserved, as far as the recorder saw.
    pub fn reservations(&self) -> impl Iterator<Item = (Tid, Reservation)> {
        let lines = self.declared.iter().flat_map(|text| text.lines());
        lines.filter_map(|line| {
            let mut numbers = line.strip_prefix(RESERVATION)?.split(' ').map(str::parse::<u64>);
            let mut next = || numbers.next()?.ok();
            let thread = next()?.try_into().ok()?;
            Some((thread, Reservation { runtime: next()?, deadline: next()?, period: next()? }))
        })
    }

    /// What of the file is missing or had to be guessed.
    pub fn damage(&self) -> &[String] {
        &self.damage
    }

    /// The formats of its events.
    pub fn formats(&self) -> &[EventFormat] {
        &self.formats
    }

    /// The events whose formats could not be read; their records are left out.
    pub fn unreadable(&self) -> &[(String, FormatError)] {
        &self.unreadable
    }

    /// Those of them that the analysis has a use for, as `group:event`.
    pub fn unusable(&self) -> impl Iterator<Item = (&str, &FormatError)> {
        let used =
            |event: &str| event.split_once(':').is_some_and(|(group, name)| recipe(group, name).is_some());
        self.unreadable
            .iter()
            .map(|(event, error)| (event.as_str(), error))
            .filter(move |(event, _)| used(event))
    }
}

/// The events of a trace, in order.
pub struct Events {
    merge: Merge<CpuStream>,
}

impl Events {
    /// With what the analysis does not know, as [`Kind::Other`](crate::event::Kind::Other): for those who show it.
    #[must_use]
    pub fn with_others(mut self) -> Self {
        self.merge.context_mut().want_others();
        self
    }

    /// The names of threads, as far as the events up to here have them.
    pub fn threads(&self) -> &Threads {
        self.merge.context().threads()
    }

    /// The names of interrupts, as far as the events up to here have them.
    pub fn interrupts(&self) -> &Interrupts {
        self.merge.context().interrupts()
    }

    /// The names of system calls, as far as the events up to here have them.
    pub fn calls(&self) -> &Calls {
        self.merge.context().calls()
    }

    /// The names of tasks of Punctual apps, as far as the events up to here have them.
    pub fn tasks(&self) -> &marker::Tasks {
        self.merge.context().tasks()
    }

    /// How many records were left out up to here because the analysis knows nothing of their event, by its number.
    pub fn skipped(&self) -> impl Iterator<Item = (u16, u64)> {
        self.merge.context().skipped()
    }

    /// The same, by the names that the formats have.
    pub fn skipped_names(&self, formats: &[EventFormat]) -> Vec<(String, u64)> {
        let name = |id: u16| {
            let format = formats.iter().find(|format| format.id == id);
            format.map_or(format!("event {id}"), |format| format!("{}:{}", format.system, format.name))
        };
        self.skipped().map(|(id, count)| (name(id), count)).collect()
    }

    /// What is left out although the analysis has a use for it, because the kernel's event lacks a field.
    pub fn incomplete(&self) -> &[String] {
        self.merge.context().incomplete()
    }
}

impl Events {
    /// The next events, all of one CPU: as many as come before those of the others. An analysis that takes them as they come
    /// is faster so.
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
