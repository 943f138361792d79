//! Recording: events of the kernel into a capture directory, which [`read`](crate::read) opens and
//! [`write::dat`](crate::write::dat) converts to a trace.dat.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use punctual_trace::record::{Config, Filter, Recording};
//! use punctual_trace::write::dat;
//!
//! let config = Config { filter: Filter { processes: vec![411], ..Filter::default() }, ..Config::default() };
//! let recording = Recording::start(config, "trace.dat.raw".as_ref())?;
//! recording.absent().iter().for_each(|absent| eprintln!("{absent}"));
//! std::thread::sleep(Duration::from_secs(10));
//! let summary = recording.stop()?;
//! for cpu in summary.losses.iter().filter(|cpu| cpu.lost > 0) {
//!     eprintln!("CPU {}: {} events lost; record with larger buffers", cpu.cpu, cpu.lost);
//! }
//! dat::write("trace.dat.raw".as_ref(), "trace.dat".as_ref())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Dropping a recording removes it from the kernel. For this to happen on SIGINT and SIGTERM as
//! well, the caller must handle these signals and stop the recording; after SIGKILL the next
//! recording cleans up, and the directory can still be read.

mod addresses;
mod drain;
mod error;
mod events;
mod filter;
mod live;
mod newest;
mod reservations;
mod save;
mod schedule;
mod setup;
mod tracefs;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use punctual_files::Directory;

pub use drain::drop_real_time_policy;
pub use error::RecordError;
pub use events::{Absent, Group};
pub use filter::Filter;
pub use live::{Live, LiveError};
pub use reservations::reservation;
pub use tracefs::{Buffers, refused_marks, remove_leftovers};

use self::drain::Drain;
use self::save::Saver;
use self::schedule::store::{self, Counts};
use self::tracefs::Instance;
use crate::buffer_stats;
use crate::format::fields::{EventFormat, PageLayout};

/// The settings of a recording.
#[derive(Debug, Clone)]
pub struct Config {
    /// The groups of events.
    pub groups: Vec<Group>,
    /// Further events of the kernel, as `group:event`, where `*` matches any characters. System
    /// call events are recorded only for the traced threads.
    pub tracepoints: Vec<String>,
    /// The threads.
    pub filter: Filter,
    /// Omit switches and wake-ups that name no traced thread. The recording is smaller, but does
    /// not show which thread a traced thread waited for if that thread is not traced. Threads that
    /// are started later are also traced, whether they are selected by process, or by name or
    /// priority; if both are given, all threads are recorded, and [`Recording::absent`] reports
    /// this.
    pub narrow: bool,
    /// The buffer size of each CPU, in KiB. The kernel allocates it during the recording.
    pub buffer_kib: u32,
    /// The recorded CPUs; all if empty.
    pub cpus: Vec<u32>,
    /// The CPUs on which the recorder itself runs; those that are not recorded if empty.
    pub housekeeping: Vec<u32>,
    /// The trace clock; `mono` is CLOCK_MONOTONIC.
    pub clock: String,
    /// The interval at which pages are moved.
    pub every: Duration,
    /// Record like a flight recorder: keep the newest events in the kernel's buffers, where they
    /// replace the oldest, and move them when the recording is stopped. Nothing is written until
    /// then. [`Group::Schedule`] is omitted, because its buffer keeps the oldest events.
    pub newest: bool,
}

impl Default for Config {
    /// The default groups of all threads on all CPUs, with 8 MiB for each CPU.
    fn default() -> Self {
        Self {
            groups: Group::USUAL.to_vec(),
            tracepoints: Vec::new(),
            filter: Filter::default(),
            narrow: false,
            buffer_kib: 8 << 10,
            cpus: Vec::new(),
            housekeeping: Vec::new(),
            clock: "mono".to_owned(),
            every: Duration::from_millis(50),
            newest: false,
        }
    }
}

impl Config {
    /// Returns the CPUs for threads that record or analyze: the housekeeping CPUs, or those that
    /// are not recorded; empty if these are all CPUs.
    pub fn housekeeping_cpus(&self) -> Vec<u32> {
        setup::housekeeping(self)
    }
}

/// The events of a CPU that the kernel lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// The CPU.
    pub cpu: u32,
    /// The number of events dropped, or overwritten before they were read. Does not count those
    /// that [newer](Config::newest) ones have replaced.
    pub lost: u64,
    /// The number of events read from the buffer.
    pub read: u64,
}

/// The result of a recording.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The directory of the recording.
    pub directory: PathBuf,
    /// The size of its pages, in bytes.
    pub bytes: u64,
    /// The losses by CPU.
    pub losses: Vec<Loss>,
    /// The requested events that it does not contain.
    pub absent: Vec<Absent>,
}

/// A running recording. Dropping it ends it; [`Recording::stop`] also returns the result.
pub struct Recording {
    /// The thread that moves the records of the BPF programs, and their counts by CPU.
    schedule: Option<(Drain, Arc<[Counts]>)>,
    /// The thread that polls the reservations of threads under SCHED_DEADLINE.
    reservations: Option<Drain>,
    // In this order: the kernel removes an instance only when it has no readers.
    drain: Drain,
    instances: Vec<Instance>,
    tracefs: PathBuf,
    directory: Arc<Directory>,
    cpus: Vec<u32>,
    names: String,
    absent: Vec<Absent>,
    removed: Vec<String>,
    /// The files of pages.
    files: (Vec<String>, PageLayout),
    /// True if only the newest events are kept.
    newest: bool,
    /// The formats of the events, if the caller may not see addresses of the kernel.
    hidden: Option<Vec<EventFormat>>,
}

impl Recording {
    /// Starts to record into `directory`, which must not exist. It is created with mode 0700, and
    /// accessed through its descriptor.
    pub fn start(config: Config, directory: &Path) -> Result<Self, RecordError> {
        setup::start(&config, None, directory).map_err(RecordError::without_events)
    }

    /// Like [`start`](Self::start), with existing buffers.
    pub fn start_in(buffers: Buffers, config: Config, directory: &Path) -> Result<Self, RecordError> {
        setup::start(&config, Some(buffers), directory).map_err(RecordError::without_events)
    }

    /// Returns the requested events that the kernel does not have.
    pub fn absent(&self) -> &[Absent] {
        &self.absent
    }

    /// Returns the value of the variable `PUNCTUAL_TRACE` for Punctual apps: see
    /// [`Buffers::for_apps`].
    pub fn for_apps(&self) -> String {
        self.instances[0].for_apps()
    }

    /// Returns the removed instances of recorders that had been killed.
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    /// Returns the number of bytes recorded so far.
    pub fn bytes(&self) -> u64 {
        self.drains().map(Drain::bytes).sum()
    }

    /// Returns whether it has ended early; [`Recording::stop`] returns the reason.
    pub fn failed(&self) -> bool {
        self.drains().any(Drain::failed)
    }

    fn drains(&self) -> impl Iterator<Item = &Drain> {
        self.schedule.iter().map(|(drain, _)| drain).chain([&self.drain])
    }

    /// Returns the losses so far, by CPU.
    pub fn losses(&self) -> Vec<Loss> {
        let one = |(index, cpu): (usize, &u32)| {
            let mut loss = Loss { cpu: *cpu, lost: 0, read: 0 };
            for instance in &self.instances {
                let text = self.statistics(instance, *cpu).unwrap_or_default();
                loss.lost += buffer_stats::lost(&text);
                loss.read += buffer_stats::number(&text, "read events").unwrap_or(0);
            }
            if let Some((_, counts)) = &self.schedule {
                let (lost, stored) = counts[index].get();
                (loss.lost, loss.read) = (loss.lost + lost, loss.read + stored);
            }
            loss
        };
        self.cpus.iter().enumerate().map(one).collect()
    }

    /// Returns the kernel's statistics of a buffer.
    fn statistics(&self, instance: &Instance, cpu: u32) -> Result<String, RecordError> {
        let text = instance.read(&format!("per_cpu/cpu{cpu}/stats"))?;
        // The replaced events precede the recording.
        Ok(if self.newest { text.replace("\noverrun:", "\nreplaced:") } else { text })
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// Returns an error if the recording failed. The events recorded before are in the directory
    /// and can be read.
    pub fn stop(mut self) -> Result<Recorded, RecordError> {
        let scheduled = self.schedule.as_mut().map_or(Ok(()), |(drain, _)| drain.finish());
        for instance in &self.instances {
            instance.set_on(false)?;
        }
        let reserved = self.reservations.as_mut().map_or(Ok(()), Drain::finish);
        let mut drained = self.drain.finish().and(scheduled).and(reserved);
        let (files, layout) = &self.files;
        if drained.is_ok() && self.newest {
            drained = newest::align(files, layout, &self.directory);
        }
        // Even if the disk is full: this takes no space.
        if let Some(formats) = &self.hidden {
            let hidden = addresses::hide(files, formats, layout, &self.directory);
            drained = drained.and(hidden);
        }
        let saver = Saver { tracefs: &self.tracefs, directory: &self.directory };
        for (instance, prefix) in self.instances.iter().zip(PREFIXES) {
            for cpu in &self.cpus {
                let name = format!("per_cpu/cpu{cpu}/stats");
                let statistics = self.statistics(instance, *cpu)?;
                // On a full disk the statistics cannot be written either; the full disk is the
                // error to report.
                let saved = saver.write(&format!("{prefix}{name}"), statistics.as_bytes());
                if drained.is_ok() {
                    saved?;
                }
            }
        }
        drained?;
        if let Some((_, counts)) = &self.schedule {
            for (cpu, counts) in self.cpus.iter().zip(counts.iter()) {
                saver.write(&store::statistics_file(*cpu), counts.statistics().as_bytes())?;
            }
        }
        saver.names(&mut self.names)?;
        Ok(Recorded {
            bytes: self.bytes(),
            losses: self.losses(),
            absent: std::mem::take(&mut self.absent),
            directory: self.directory.path().to_owned(),
        })
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // Ends the programs' records before those of the switches.
        self.schedule = None;
        // The loop over the last pages ends only because recording has ended.
        for instance in &self.instances {
            let _ = instance.set_on(false);
        }
    }
}

/// Positions of the buffers in the capture directory: that of the events, and that of followed
/// threads if it is separate.
const PREFIXES: [&str; 2] = ["", "instances/followed/"];
