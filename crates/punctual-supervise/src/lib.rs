//! Supervises a Punctual app from another process, at a priority above the app's and on another
//! CPU.
//!
//! The app publishes in [shared memory](punctual_core::heartbeat) which job runs at each level and
//! since when, and on request the CPU time of its threads. So a job that uses more CPU time than
//! its `budget` is detected even in an endless loop at real-time priority: the supervisor reads its
//! stack from outside, and then the app continues, is asked to stop, or is killed, according to the
//! task's `on_budget`. A job that is preempted for longer than its budget is reported, as are a
//! crash, with its stack, a stop by SIGSTOP, and an end by the OOM killer. The app is restarted
//! after a pause, if so configured, and finds the state that it kept (`punctual::persistent`).
//!
//! [`framehop`] unwinds stacks with the unwind tables that every Rust program contains. Frame
//! pointers are the alternative, but programs are built without them by default.
//!
//! ```no_run
//! use std::process::Command;
//! use std::sync::atomic::AtomicI32;
//!
//! use punctual_supervise::{Settings, supervise};
//!
//! let make = || Ok(Command::new("./my-app"));
//! let status = supervise(&make, &Settings::default(), &AtomicI32::new(0), &mut |event| eprintln!("{event}"))?;
//! println!("{status}");
//! # Ok::<(), punctual_supervise::SuperviseError>(())
//! ```

mod budget;
mod child;
mod event;
mod memory;
mod snapshot;
mod stack;
mod state_directory;
mod watch;

pub use self::event::{Action, Event, SuperviseError};
pub use self::watch::{Settings, supervise};
pub use punctual_process::restart::Restart;
