//! Real-time tasks on Linux: deadlock-free by construction, measured against the clock.
//!
//! Declare tasks, their priorities, periods and deadlines, and the resources they share, in one
//! module. The [`app`](macro@app) attribute computes the priority ceilings and turns the module
//! into a program that runs on real-time threads pinned to one CPU, or, unchanged, in virtual time
//! on one ordinary thread.
//!
//! ```
//! use punctual::prelude::*;
//!
//! #[punctual::app(main = false)]
//! mod app {
//!     use punctual::prelude::*;
//!
//!     #[shared]
//!     struct Shared {
//!         level: f32,
//!     }
//!
//!     #[local]
//!     struct Local {}
//!
//!     #[init]
//!     fn init(_: init::Context) -> (Shared, Local) {
//!         (Shared { level: 0.0 }, Local {})
//!     }
//!
//!     /// Released by the clock, every 10 ms on an absolute grid.
//!     #[task(priority = 2, period = 10.millis(), shared = [level])]
//!     fn sample(mut cx: sample::Context) {
//!         let level = cx.shared.level.lock(|level| {
//!             *level += 0.5;
//!             *level
//!         });
//!         if level >= 2.0 {
//!             // Queued: `alarm` is below `sample`. A spawn of a higher task would run right here.
//!             alarm::spawn(level).expect("at most one alarm is waiting");
//!         }
//!     }
//!
//!     #[task(priority = 1, shared = [level])]
//!     fn alarm(mut cx: alarm::Context, seen: f32) {
//!         cx.shared.level.lock(|level| assert!(*level >= seen));
//!         punctual::shutdown();
//!     }
//! }
//!
//! // The same program in virtual time: no waiting, no privileges, the same order every time.
//! let report = app::run(punctual::Config::new().virtual_time()).expect("nothing can be missing");
//! # #[cfg(feature = "monitoring")]
//! assert_eq!(report.task("sample").unwrap().jobs, 4);
//! ```
//!
//! # A spawn is a preemption point
//!
//! A spawn of a task whose level is above the partition's runs it immediately, as a function call
//! on the spawner's stack: no thread is woken, and the kernel is not entered. Pending an interrupt
//! in RTIC on a microcontroller does the same. Inside `lock`, the level is the resource's ceiling,
//! so a spawned task at or below the ceiling runs right after the lock is released.
//!
//! # Several CPUs
//!
//! `#[app(partitions = [control, io])]` with `core = io` on tasks assigns tasks to several CPUs;
//! `fast(poll)` declares a partition whose only thread never enters the kernel; `#[app(executor =
//! "global")]` lets every level run on any free CPU. See [`app`](macro@app).
//!
//! # Guarantees and their conditions
//!
//! Mutual exclusion, freedom from deadlock, at most one running job per level and no lost job hold
//! for any behavior of the tasks and any set of granted privileges; the proof is on the page of
//! [`punctual_core::Partition`]. *Timing* needs the real-time settings: the run's [`Report`] shows
//! the settings that applied to each thread, and [`Config::strict`] refuses to run with less.
//!
//! # Forks
//!
//! A child process created by `fork` has a single thread, a copy of the one that forked. It may
//! `exec` or `_exit`, as `std::process::Command` does. In it every app is stopping, so no spawn has
//! an effect; and if it returns from the job that forked into the executor, it is ended with a
//! message and exit code 70 before another job runs. Children created by `clone(2)` directly,
//! without the C library, are not detected.
//!
//! # Marks in the kernel's trace
//!
//! With `PUNCTUAL_TRACE=1` or [`Config::trace`] every job marks its start and end in the trace of
//! the kernel, from which `punctual-trace` attributes every microsecond.
//!
//! # Messages
//!
//! Settings that are missing at start-up are logged as warnings to the [`log`](mod@log) crate, with
//! the target `punctual`, if the program has set a logger, and to standard error otherwise. The
//! logger is called only on ordinary threads: before `init`, on the one that runs the app, and in
//! [`background::spawn`], on the new one. So it may allocate and block, and delays the steps that
//! follow. No thread with a real-time priority calls it, and no thread does because of a fault:
//! messages about panics, overflowing stacks and jobs that do not end are written to standard
//! error, without allocating.
//!
//! Jobs log by [`log!`], which neither allocates nor blocks. An ordinary thread passes the records
//! to the logger, including those from before a fault.
//!
//! # Features
//!
//! All are on by default, and `std` enables two that boards choose: `alloc`, for boards with an
//! allocator, adds the standard library's additions to the prelude of `core`, such as `Vec`, to the
//! module of an app, and the buckets of the histograms to the report; `virtual-time` lets an app
//! run in virtual time, and end after a time limit. Features only add: a package that compiles with
//! some compiles with more.
//!
//! | feature | without it |
//! |---|---|
//! | `monitoring` | jobs are not measured, which saves two readings of the clock per job; the [report](report::TaskReport::measured) marks it |
//! | `guard` | no [`Config::guard`], which finds jobs that allocate or block. Saves `backtrace` |
//! | `signals` | SIGINT and SIGTERM have their default effect: they end the process, unless the program handles them. Saves `signal-hook` |
//! | `async` | no `async fn` tasks, and nothing that they wait for |
//! | `std` | no process: the crate is `no_std`, and the app is a program for a bare board, whose crate (`punctual-bare`) starts it. `guard` and `signals` need `std`, and so do descriptors in async tasks |
//!
//! # Modules
//!
//! * [`mod@config`]: where and how to run; [`mod@report`]: results of a run; [`model`]: the
//!   declarations.
//! * [`mod@guard`]: jobs that allocate or block, with the location.
//! * [`persistent`]: state that outlives a crash, under a supervisor.
//! * [`background`]: threads for everything that is not real-time; [`health`]: the figures of the
//!   running app.
//! * [`external_clock`]: grids that follow a PTP hardware clock, EtherCAT or a sound card.
//! * [`remote`]: memory and doorbells shared with a program on a CPU that Linux gave up.
#![cfg_attr(not(feature = "std"), no_std)]
#![warn(missing_docs)]

#[cfg(feature = "alloc")]
extern crate alloc;

#[cfg(not(feature = "std"))]
mod board;
mod cells;
pub mod config;
#[doc(hidden)]
pub mod export;
mod lock;
pub mod model;
mod port;
#[cfg(feature = "std")]
mod process;
pub mod report;
mod run;
mod start_error;
mod state;
mod stop;
mod task;

#[cfg(not(feature = "std"))]
use board as platform;
pub use config::Config;
#[cfg(feature = "guard")]
pub use observe::guard;
#[cfg(feature = "std")]
use process::{self as platform, logging, observe};
#[cfg(feature = "std")]
pub use process::{
    background, external_clock,
    external_clock::{ClockSource, ExternalClock, StaleReading},
    observe::metrics::health,
    persistent, remote,
    run::{RunningApp, VirtualThread, spawn_in_virtual_time},
};
pub use punctual_core::{Duration, Instant, IntoDuration, Mutex};
#[cfg(feature = "io")]
#[doc(inline)]
pub use punctual_io as io;
pub use punctual_macros::app;
/// Channels, queues, rings and mutexes, for use beyond the resources of an app.
pub use punctual_sync as sync;
pub use report::Report;
pub use run::services::{now, shutdown, spend, wait_for_event};
pub use start_error::StartError;
#[cfg(feature = "async")]
pub use task::async_task::{
    Delay, Tick, Ticker, Timeout, TimeoutError, delay, delay_until, every, timeout_after, timeout_at,
};
#[cfg(all(feature = "async", feature = "std"))]
pub use task::async_task::{Readiness, readable, writable};
pub use task::message::SpawnHandle;
pub use task::spawn_error::{FullTask, SpawnError, TooLate};

/// The usual imports of an app module.
///
/// [`Mutex`] for `lock`, the same for tuples of up to 16 resources, `100.micros()` and
/// `Duration::micros(100)`.
pub mod prelude {
    pub use punctual_core::several::{Lock2, Lock3, Lock4, Lock5, Lock6, Lock7, Lock8};
    pub use punctual_core::several::{Lock9, Lock10, Lock11, Lock12, Lock13, Lock14, Lock15, Lock16};
    pub use punctual_core::{Mutex, ShortNames, Units};
}
