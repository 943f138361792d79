//! Watches an app of Punctual from another process, at a priority above the app's and on another CPU.
//!
//! The app tells in [shared memory](punctual_core::heartbeat) which job runs at each level and since when, and on request the CPU time
//! of its threads. So a job that uses more CPU time than its `budget` is caught even in an endless loop at real-time priority: its stack
//! is read from outside, and the app goes on, is asked to stop, or is killed, as the task's `on_budget` says. A job that is displaced for
//! longer is reported. A crash is told with its stack, too; so is a stop by SIGSTOP and
//! an end for want of memory. The app is started again after a pause, if it is to be, and then finds what it has kept
//! (`punctual::kept`).
//!
//! Stacks are unwound by [`framehop`] from the unwind tables that every Rust program has. Frame pointers, which programs are
//! built without by default, would have been the other way.
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
mod kept;
mod memory;
mod restart;
mod snapshot;
mod stack;
mod watch;

pub use self::event::{Action, Event, SuperviseError};
pub use self::restart::Restart;
pub use self::watch::{Settings, supervise};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
