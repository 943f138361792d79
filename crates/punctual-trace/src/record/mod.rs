//! Recording: events of the kernel into a capture directory, which [`read`](crate::read) opens and
//! [`write::dat`](crate::write::dat) makes a trace.dat of.
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
//! A recording that is dropped leaves nothing in the kernel. So that this happens on SIGINT and SIGTERM too, its owner
//! handles them and stops it; after SIGKILL the next recording cleans up, and the directory can be read nevertheless.

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
pub use tracefs::{Buffers, remove_leftovers};

use self::drain::Drain;
use self::save::Saver;
use self::schedule::store::{self, Counts};
use self::tracefs::Instance;
use crate::buffer_stats;
use crate::read::format::{EventFormat, PageLayout};

/// What is recorded, and how.
#[derive(Debug, Clone)]
pub struct Config {
    /// The events.
    pub groups: Vec<Group>,
    /// Further events of the kernel, as `group:event`, where `*` stands for any characters. Those of system calls are recorded
    /// of the traced threads.
    pub tracepoints: Vec<String>,
    /// The threads.
    pub filter: Filter,
    /// Leave out switches and wake-ups that name no traced thread. The recording is smaller, and does not tell whom a
    /// traced thread waited for if that is not traced itself. Threads that are started later are traced as well, whether
    /// they are chosen by process, or by name or priority; where both are said, everybody is recorded, and
    /// [`Recording::absent`] says so.
    pub narrow: bool,
    /// The buffer of each CPU, in KiB. The kernel has it in memory while it records.
    pub buffer_kib: u32,
    /// The CPUs that are recorded; all if none is said.
    pub cpus: Vec<u32>,
    /// The CPUs that the recorder itself runs on; those that are not recorded if none is said.
    pub housekeeping: Vec<u32>,
    /// The clock of the trace; `mono` is CLOCK_MONOTONIC.
    pub clock: String,
    /// How often pages are moved.
    pub every: Duration,
    /// Record like a flight recorder: keep the newest events in the kernel's buffers, where they replace the oldest, and move
    /// them when the recording is stopped. Nothing is written meanwhile, however long it takes. [`Group::Schedule`] is left out, as
    /// its buffer keeps the oldest.
    pub newest: bool,
}

impl Default for Config {
    /// The usual groups of all threads on all CPUs, with 8 MiB for each CPU.
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
    /// The CPUs for threads that record or analyse: the housekeeping ones, or those that are not recorded; none in particular
    /// if that is everywhere.
    pub fn housekeeping_cpus(&self) -> Vec<u32> {
        setup::housekeeping(self)
    }
}

/// What the kernel lost of a CPU's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// The CPU.
    pub cpu: u32,
    /// How many events were dropped, or overwritten before they were read. Those that [newer](Config::newest) ones have replaced
    /// are not among them.
    pub lost: u64,
    /// How many have been taken out of the buffer.
    pub read: u64,
}

/// What came of a recording.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Where it is.
    pub directory: PathBuf,
    /// How large its pages are, in bytes.
    pub bytes: u64,
    /// What was lost, by CPU.
    pub losses: Vec<Loss>,
    /// What was asked for and is not in it.
    pub absent: Vec<Absent>,
}

/// A recording that runs. Dropping it ends it; [`Recording::stop`] also says what came of it.
pub struct Recording {
    /// What moves the records of the BPF programs, and their counts by CPU.
    schedule: Option<(Drain, Arc<[Counts]>)>,
    /// What asks for the reservations of threads under SCHED_DEADLINE.
    reservations: Option<Drain>,
    // In this order: the kernel removes an instance only when nobody reads it any more.
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
    /// Only the newest events are wanted.
    newest: bool,
    /// The formats of the events, if the caller may not see addresses of the kernel.
    hidden: Option<Vec<EventFormat>>,
}

impl Recording {
    /// Starts to record into `directory`, which must not exist. It is made with mode 0700, and accessed through its descriptor.
    pub fn start(config: Config, directory: &Path) -> Result<Self, RecordError> {
        setup::start(&config, None, directory)
    }

    /// The same with buffers that are there already.
    pub fn start_in(buffers: Buffers, config: Config, directory: &Path) -> Result<Self, RecordError> {
        setup::start(&config, Some(buffers), directory)
    }

    /// What was asked for and the kernel does not have.
    pub fn absent(&self) -> &[Absent] {
        &self.absent
    }

    /// What the variable `PUNCTUAL_TRACE` is to say to Punctual apps: see [`Buffers::for_apps`].
    pub fn for_apps(&self) -> String {
        self.instances[0].for_apps()
    }

    /// The instances of recorders that had been killed, which are gone now.
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    /// How much has been recorded, in bytes.
    pub fn bytes(&self) -> u64 {
        self.drains().map(Drain::bytes).sum()
    }

    /// Whether it has ended early; [`Recording::stop`] says why.
    pub fn failed(&self) -> bool {
        self.drains().any(Drain::failed)
    }

    fn drains(&self) -> impl Iterator<Item = &Drain> {
        self.schedule.iter().map(|(drain, _)| drain).chain([&self.drain])
    }

    /// What has been lost, by CPU.
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

    /// What the kernel has counted of a buffer.
    fn statistics(&self, instance: &Instance, cpu: u32) -> Result<String, RecordError> {
        let text = instance.read(&format!("per_cpu/cpu{cpu}/stats"))?;
        // What was replaced came before the recording.
        Ok(if self.newest { text.replace("\noverrun:", "\nreplaced:") } else { text })
    }

    /// Ends the recording.
    ///
    /// With an error, what had been recorded before is in the directory and can be read.
    pub fn stop(mut self) -> Result<Summary, RecordError> {
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
        // Also if the disk is full: it takes no room.
        if let Some(formats) = &self.hidden {
            let hidden = addresses::hide(files, formats, layout, &self.directory);
            drained = drained.and(hidden);
        }
        let saver = Saver { tracefs: &self.tracefs, directory: &self.directory };
        for (instance, prefix) in self.instances.iter().zip(PREFIXES) {
            for cpu in &self.cpus {
                let name = format!("per_cpu/cpu{cpu}/stats");
                let statistics = self.statistics(instance, *cpu)?;
                // With a full disk there are none of these either, and that is the error to tell.
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
        Ok(Summary {
            bytes: self.bytes(),
            losses: self.losses(),
            absent: std::mem::take(&mut self.absent),
            directory: self.directory.path().to_owned(),
        })
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // It ends what the programs write before the switches end.
        self.schedule = None;
        // The last pages are moved until there are no more, which has an end only when nothing is recorded any more.
        for instance in &self.instances {
            let _ = instance.set_on(false);
        }
    }
}

/// Where in the capture directory the buffers are: that of the events, and that of followed threads where it is another.
const PREFIXES: [&str; 2] = ["", "instances/followed/"];
