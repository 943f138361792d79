//! Live events, without a file.
//!
//! The pages of all CPUs are read at an interval. Events older than a short delay are in order: all
//! events recorded before have been read. The delay is necessary because a CPU may be held up, by
//! its hypervisor for instance, between taking the time of an event and writing the event.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use punctual_trace::record::{Config, Live};
//!
//! let mut live = Live::start(&Config::default())?;
//! let mut events = Vec::new();
//! for _ in 0..100 {
//!     std::thread::sleep(Duration::from_millis(50));
//!     events.clear();
//!     live.take(&mut events)?;
//!     println!("{} events", events.len());
//! }
//! # Ok::<(), punctual_trace::record::LiveError>(())
//! ```

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::error::RecordError;
use super::reservations::Reservations;
use super::schedule::Programs;
use super::setup::{self, Ready};
use super::tracefs::{Buffers, Instance, open_pages};
use super::{Absent, Config, save};
use crate::event::{Event, Kind, Tid};
use crate::format::Order;
use crate::format::fields::{EventFormat, PageLayout};
use crate::format::page::{Missed, Page, PageError};
use crate::jobs::Reservation;
use crate::read::dat::Functions;
use crate::read::translate::{Calls, Interrupts, ShortRecord, Threads, Translator};
use crate::recorded::Recorded;

/// The minimum age of an event that is returned.
const MOMENT: Duration = Duration::from_millis(100);

/// An error that ends a live recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The recording did not start.
    #[error("{0}")]
    Start(#[from] RecordError),
    /// The kernel's pages cannot be read.
    #[error("reading the events of CPU {cpu}: {error}; start again if the CPU went offline")]
    Read {
        /// The CPU.
        cpu: u16,
        /// The kernel's error.
        #[source]
        error: io::Error,
    },
    /// A page of the kernel is invalid.
    #[error("CPU {cpu}: {error}; {}", REPORT)]
    Page {
        /// The CPU.
        cpu: u16,
        /// The error in the page.
        #[source]
        error: PageError,
    },
    /// A record of the kernel is invalid.
    #[error("CPU {cpu}: {error}; {}", REPORT)]
    Record {
        /// The CPU.
        cpu: u16,
        /// The error in the record.
        #[source]
        error: ShortRecord,
    },
}

const REPORT: &str = "the layout of the kernel's buffer is unknown to this version; use a newer one";

/// The pages of a CPU of one instance.
struct Source {
    cpu: u16,
    pages: File,
    /// Events that have been read but are not old enough.
    waiting: VecDeque<Event>,
    last: u64,
}

/// The scheduler's entries and returns.
struct Scheduled {
    programs: Programs,
    /// Events that have been read but are not old enough, for each of the programs' CPUs.
    waiting: Vec<(u16, VecDeque<Event>)>,
}

impl Scheduled {
    fn start(mut programs: Programs) -> Result<Self, RecordError> {
        programs.attach()?;
        let one =
            |&cpu: &u32| Ok((u16::try_from(cpu).map_err(|_| RecordError::Cpu { cpu })?, VecDeque::new()));
        let waiting = programs.cpus().iter().map(one).collect::<Result<_, RecordError>>()?;
        Ok(Self { programs, waiting })
    }

    /// Ends the recording, and reads the remaining records.
    fn stop(&mut self) {
        self.programs.detach();
        self.read(u64::MAX);
        for (index, (cpu, waiting)) in self.waiting.iter_mut().enumerate() {
            if let Some((count, time)) = self.programs.missing(index) {
                waiting.push_back(Event { time, cpu: *cpu, by: 0, kind: Kind::Lost { count } });
            }
        }
    }

    /// Reads the available records, at most up to those written at that time.
    fn read(&mut self, until: u64) {
        for (index, (cpu, waiting)) in self.waiting.iter_mut().enumerate() {
            self.programs.read(index, |record| {
                waiting.extend(record.events(*cpu));
                record.time <= until
            });
        }
    }
}

/// Live events.
pub struct Live {
    scheduled: Option<Scheduled>,
    // In this order: the kernel removes an instance only when it has no readers.
    sources: Vec<Source>,
    instances: Vec<Instance>,
    translator: Translator,
    layout: PageLayout,
    page: Vec<u8>,
    batch: Vec<Event>,
    given: u64,
    until: u64,
    late: u64,
    absent: Vec<Absent>,
    recorded: Recorded,
    reservations: Reservations,
}

impl Live {
    /// Starts a recording whose events the caller takes at an interval, often enough that the
    /// buffers do not overflow.
    ///
    /// The clock is `mono`, which determines when an event is old enough.
    pub fn start(config: &Config) -> Result<Self, LiveError> {
        Self::ready(config, None)
    }

    /// Like [`start`](Self::start), with existing buffers.
    pub fn start_in(buffers: Buffers, config: &Config) -> Result<Self, LiveError> {
        Self::ready(config, Some(buffers))
    }

    fn ready(config: &Config, buffers: Option<Buffers>) -> Result<Self, LiveError> {
        if config.clock != "mono" {
            let (clock, available) = (config.clock.clone(), "mono, if events are to be watched".to_owned());
            return Err(RecordError::Clock { clock, available }.into());
        }
        let Ready {
            tracefs,
            instances,
            systems,
            calls,
            functions,
            cpus,
            page: layout,
            schedule,
            absent,
            declared,
            ..
        } = setup::ready(config, buffers)?;
        let formats: Vec<_> = save::format_files(&tracefs, &systems, calls)
            .into_iter()
            .filter_map(|(system, file)| EventFormat::parse(system, &fs::read(tracefs.join(file)).ok()?).ok())
            .collect();
        let known = Functions::of(&fs::read("/proc/kallsyms").unwrap_or_default());
        let traced = if functions { &known.schedule[..] } else { &[] };
        let mut translator = Translator::new(Order::NATIVE, &formats, traced);
        translator.set_budget_timer(known.budget_timer);
        translator.threads_mut().insert_lines(save::names(&tracefs).as_bytes());
        let mut sources = Vec::new();
        for &cpu in &cpus {
            for instance in &instances {
                let pages = open_pages(instance.path(), cpu)?;
                let cpu = u16::try_from(cpu).map_err(|_| RecordError::Cpu { cpu })?;
                sources.push(Source { cpu, pages, waiting: VecDeque::new(), last: 0 });
            }
        }
        for instance in &instances {
            instance.set_on(true)?;
        }
        instances[0].take_marks();
        let scheduled = schedule.map(Scheduled::start).transpose()?;
        let (page, batch) = (vec![0; layout.size], Vec::new());
        Ok(Self {
            scheduled,
            sources,
            instances,
            translator,
            layout,
            page,
            batch,
            given: 0,
            until: 0,
            late: 0,
            absent,
            recorded: Recorded::declared(&declared),
            reservations: Reservations::new(&config.filter.processes),
        })
    }

    /// Appends the events that are old enough, ordered by time and then by CPU. Does not wait.
    pub fn take(&mut self, into: &mut Vec<Event>) -> Result<(), LiveError> {
        let now = clock_gettime(ClockId::Monotonic);
        let now = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        self.read(now)?;
        self.until = now.saturating_sub(MOMENT.as_nanos() as u64);
        self.give(self.until, into);
        Ok(())
    }

    /// Stops recording and appends all remaining events.
    pub fn stop(mut self, into: &mut Vec<Event>) -> Result<(), LiveError> {
        if let Some(scheduled) = &mut self.scheduled {
            scheduled.stop();
        }
        for instance in &self.instances {
            instance.set_on(false)?;
        }
        self.read(u64::MAX)?;
        self.give(u64::MAX, into);
        Ok(())
    }

    /// Reads the available events, at most up to those recorded at that time, because recording
    /// continues.
    fn read(&mut self, until: u64) -> Result<(), LiveError> {
        if let Some(scheduled) = &mut self.scheduled {
            scheduled.read(until);
        }
        for source in &mut self.sources {
            let cpu = source.cpu;
            while source.last <= until {
                match source.pages.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(count) => self.page[count..].fill(0),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(LiveError::Read { cpu, error }),
                }
                let wrong = |error| LiveError::Page { cpu, error };
                let mut page = Page::open(&self.layout, &self.page).map_err(wrong)?;
                self.batch.clear();
                if let Some(missed) = page.header().missed {
                    let count = if let Missed::Count(count) = missed { count } else { 0 };
                    let time = page.header().time.max(source.last);
                    self.batch.push(Event { time, cpu, by: 0, kind: Kind::Lost { count } });
                }
                while let Some(record) = page.next_record().map_err(wrong)? {
                    source.last = record.time;
                    let translated = self.translator.translate(cpu, &record, &mut self.batch);
                    translated.map_err(|error| LiveError::Record { cpu, error })?;
                }
                source.waiting.extend(self.batch.iter());
            }
        }
        Ok(())
    }

    /// Appends the events up to that time.
    fn give(&mut self, until: u64, into: &mut Vec<Event>) {
        let start = into.len();
        let scheduled = self.scheduled.iter_mut().flat_map(|scheduled| &mut scheduled.waiting);
        let waiting = self.sources.iter_mut().map(|source| &mut source.waiting);
        for waiting in scheduled.map(|(_, waiting)| waiting).chain(waiting) {
            let count = waiting.partition_point(|event| event.time <= until);
            into.extend(waiting.drain(..count));
        }
        for event in &mut into[start..] {
            if event.time < self.given {
                self.late += 1;
                event.time = self.given;
            }
        }
        // The sort is stable and uses the existing order within each CPU.
        into[start..].sort_by_key(|event| (event.time, event.cpu));
        self.given = self.given.max(until.min(into.last().map_or(0, |event| event.time)));
    }

    /// Returns the time up to which all events have been returned, by the trace clock.
    pub fn until(&self) -> u64 {
        self.until
    }

    /// Returns how many events arrived after younger ones had been returned; their times were set
    /// to those.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Returns the requested events that the kernel does not have.
    pub fn absent(&self) -> &[Absent] {
        &self.absent
    }

    /// Returns the SCHED_DEADLINE reservations of threads, if they have changed. They are polled
    /// from the kernel.
    pub fn reservations(&mut self) -> Vec<(Tid, Reservation)> {
        if self.reservations.sample(false) { self.reservations.iter().collect() } else { Vec::new() }
    }

    /// Returns the kinds of events that it contains if they occur.
    pub fn recorded(&self) -> &Recorded {
        &self.recorded
    }

    /// Returns the names of threads, as far as the events so far contain them.
    pub fn threads(&self) -> &Threads {
        self.translator.threads()
    }

    /// Returns the names of interrupts, as far as the events so far contain them.
    pub fn interrupts(&self) -> &Interrupts {
        self.translator.interrupts()
    }

    /// Returns the names of system calls, as far as the events so far contain them.
    pub fn calls(&self) -> &Calls {
        self.translator.calls()
    }

    /// Returns the names of tasks of Punctual apps, as far as the events so far contain them.
    pub fn tasks(&self) -> &crate::read::marker::Tasks {
        self.translator.tasks()
    }
}
