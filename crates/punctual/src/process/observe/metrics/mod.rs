//! Exports the figures of a run to other processes in [memory](punctual_core::metrics) that they
//! can read.
//!
//! The memory is an anonymous file: it disappears with the process, and is found through
//! `/proc/PID/fd`, which the kernel opens to processes that may trace this one. It is sealed, so no
//! other process can write to it or truncate it.
//!
//! Real-time safety: the memory is allocated and mapped before `init`, and jobs write to it as they
//! would write to private memory. The supervisor copies the figures that jobs do not count there.

pub mod health;
mod region;
mod text;

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::Duration;

use punctual_core::Port;
use punctual_core::metrics::{
    Header, MAGIC, MAX_TRAFFIC, MAX_TRAFFIC_NAME, TaskFigures, TrafficFigures, UPDATE_PERIOD, VERSION,
};

use self::region::Region;
use crate::background::{process, traffic};
use crate::report::Settings;
use crate::state::runtime::{Registered, Runtime, TaskInfo};

/// Interval at which the supervisor copies counts.
pub(crate) const INTERVAL: Duration = Duration::from_nanos(UPDATE_PERIOD);

/// Offset of the first task's figures.
const TASKS_AT: usize = size_of::<Header>().next_multiple_of(align_of::<TaskFigures>());

/// CPUs of the app's partitions, in their order.
pub(crate) type Cpus<'a> = &'a [Option<usize>];

/// The memory of a run.
#[derive(Debug)]
pub(crate) struct Metrics {
    runtime: &'static Runtime,
    region: Arc<Region>,
    /// Offset of the first of [`MAX_TRAFFIC`] entries.
    traffic_at: usize,
    /// `true` for each task whose jobs write figures.
    measured: Vec<bool>,
    /// The missing settings.
    missing: Vec<String>,
}

/// Exports the memory to others until dropped.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) metrics: Arc<Metrics>,
    _file: OwnedFd,
}

impl Metrics {
    /// Moves the figures of all tasks to memory that others can read.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses the memory. Then the figures are not moved.
    ///
    /// # Safety
    /// The run has not begun: no job can run.
    pub(crate) unsafe fn show(
        runtime: &'static Runtime,
        settings: &Settings,
        cpus: Cpus<'_>,
    ) -> io::Result<Shown> {
        let text = text::of(runtime, settings, cpus);
        let count = tasks(runtime).count();
        let traffic_at = TASKS_AT + count * size_of::<TaskFigures>();
        let text_at = traffic_at + MAX_TRAFFIC * size_of::<TrafficFigures>();
        let (region, file) = Region::new(runtime.name, text_at + text.len())?;
        region.write(text_at, text.as_bytes());
        region::seal(&file);
        let region = Arc::new(region);
        let mut measured = vec![false; count];
        for (index, (_, info)) in tasks(runtime).enumerate() {
            let at: NonNull<TaskFigures> = region.at(TASKS_AT + index * size_of::<TaskFigures>());
            // SAFETY: no job can run, by this function's contract, and the run's only other user of
            // the cell, its end, has not been reached. The region keeps the memory, which is zero
            // and used through shared references.
            unsafe {
                if info.cells.figures.get().is_some() {
                    measured[index] = true;
                    info.cells.figures.place(at, Arc::clone(&region) as Arc<_>);
                }
            }
        }
        let metrics = Self { runtime, region, traffic_at, measured, missing: settings.all_missing() };
        let header = metrics.header();
        header.version.store(VERSION, Relaxed);
        header.tasks.store(count as u32, Relaxed);
        header.tasks_at.store(TASKS_AT as u64, Relaxed);
        header.stride.store(size_of::<TaskFigures>() as u64, Relaxed);
        header.traffic_at.store(traffic_at as u64, Relaxed);
        header.text_at.store(text_at as u64, Relaxed);
        header.text_len.store(text.len() as u64, Relaxed);
        header.process.store(std::process::id().into(), Relaxed);
        metrics.update();
        // Release: a reader that sees it sees the rest.
        header.magic.store(MAGIC, Release);
        let metrics = Arc::new(metrics);
        health::register(Arc::downgrade(&metrics));
        Ok(Shown { metrics, _file: file })
    }

    /// Copies the figures that jobs do not write. For ordinary threads.
    pub(crate) fn update(&self) {
        let header = self.header();
        header.started.store(self.runtime.started(), Relaxed);
        header.dropped.store(self.runtime.dropped(), Relaxed);
        header.stopping.store(self.runtime.is_stopping().into(), Relaxed);
        for (index, (task, _)) in tasks(self.runtime).enumerate() {
            let occasional = &self.figures(index).occasional;
            let counters = task.counters();
            occasional.overruns.store(counters.overruns, Relaxed);
            occasional.early.store(counters.early, Relaxed);
            occasional.idle_releases.store(counters.idle_releases, Relaxed);
        }
        let [starts, ends] = process::totals();
        header.helper_starts.store(starts, Relaxed);
        header.helper_ends.store(ends, Relaxed);
        traffic::each(|place, name, counts| self.show_traffic(place, name, counts));
        header.updated.store(self.runtime.home.core.port().now().as_ticks(), Relaxed);
    }

    /// Returns the number of jobs of each measured periodic task with a period up to `longest`.
    pub(crate) fn periodic_jobs(&self, longest: Duration) -> Vec<u64> {
        let declared = self.runtime.host.model.tasks;
        let is_short = |name: &str| {
            let task = declared.iter().find(|task| task.name == name);
            let period = task.and_then(|task| task.period);
            period.is_some_and(|period| u128::from(period.as_ticks()) <= longest.as_nanos())
        };
        let tasks = tasks(self.runtime).enumerate();
        let shown = tasks.filter(|(index, (_, info))| self.measured[*index] && is_short(info.name));
        shown.map(|(index, _)| self.figures(index).jobs.load(Relaxed)).collect()
    }

    /// Exports a traffic entry, if there is room.
    fn show_traffic(&self, place: usize, name: &str, [carried, lost, refused]: [u64; 3]) {
        if place >= MAX_TRAFFIC {
            return;
        }
        let figures: NonNull<TrafficFigures> =
            self.region.at(self.traffic_at + place * size_of::<TrafficFigures>());
        // SAFETY: `show` allocated this many; they are atomics, for which zero is valid.
        let figures = unsafe { figures.as_ref() };
        figures.carried.store(carried, Relaxed);
        figures.lost.store(lost, Relaxed);
        figures.refused.store(refused, Relaxed);
        let shown = &self.header().traffic;
        // A name does not change once it is exported.
        if shown.load(Relaxed) <= place as u64 {
            let name = &name[..name.floor_char_boundary(MAX_TRAFFIC_NAME)];
            figures.name.iter().zip(name.bytes()).for_each(|(place, byte)| place.store(byte, Relaxed));
            // Release: a reader that counts it sees its name.
            shown.store(place as u64 + 1, Release);
        }
    }

    /// Returns the figures of a task, by its index.
    fn figures(&self, index: usize) -> &TaskFigures {
        let figures: NonNull<TaskFigures> = self.region.at(TASKS_AT + index * size_of::<TaskFigures>());
        // SAFETY: `show` allocated this many; they are atomics, for which zero is valid.
        unsafe { figures.as_ref() }
    }

    fn header(&self) -> &Header {
        // SAFETY: the region begins with it; it consists of atomics, for which zero is valid.
        unsafe { self.region.at::<Header>(0).as_ref() }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.metrics.header().stopping.store(1, Relaxed);
    }
}

/// Returns the tasks that have jobs.
fn tasks(runtime: &'static Runtime) -> impl Iterator<Item = (&'static dyn Registered, TaskInfo)> {
    runtime.tasks.iter().filter_map(|task| task.info().map(|info| (*task, info)))
}
