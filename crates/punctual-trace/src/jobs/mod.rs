//! Decomposes jobs: attributes every nanosecond between release and end.
//!
//! A [`Decomposer`] processes events in the order of their times and reports each [`Job`] when it
//! ends. It stores a fixed amount per CPU and per thread, so it can run for days.
//!
//! ```
//! use punctual_trace::event::{Event, Kind, SwitchOut, Task};
//! use punctual_trace::jobs::{Config, Decomposer, Bounds};
//!
//! let (control, idle) = (Task { id: 7, priority: 10 }, Task { id: 0, priority: 120 });
//! let event = |time, by, kind| Event { time, cpu: 0, by, kind };
//! let trace = [
//!     event(100, 0, Kind::Waking { task: control, cpu: 0 }),
//!     event(130, 0, Kind::Switch { from: idle, reason: SwitchOut::Runnable, to: control }),
//!     event(150, 7, Kind::IrqEntry { irq: 24 }),
//!     event(170, 7, Kind::IrqExit { irq: 24 }),
//!     event(230, 7, Kind::Switch { from: control, reason: SwitchOut::Sleeping, to: idle }),
//! ];
//!
//! let mut decomposer = Decomposer::new(Config::default());
//! let mut jobs = Vec::new();
//! for event in &trace {
//!     decomposer.feed(event, &mut |job| jobs.push(job.clone()));
//! }
//! assert_eq!(jobs[0].response, Bounds::Exact(130));
//! assert_eq!(jobs[0].jitter, Bounds::Exact(30));
//! assert_eq!(jobs[0].interference, Bounds::Exact(20));
//! // Nothing in this trace shows when the scheduler returned.
//! assert_eq!(jobs[0].execution, Bounds::Between { lo: 0, hi: 80 });
//! assert_eq!(jobs[0].check(), Ok(()));
//! ```

mod blocking;
mod bounds;
mod cause;
mod config;
mod decomposer;
mod disabled;
mod futexes;
mod history;
mod job;
mod known;
mod open_job;

pub use blocking::{Blocking, HolderState, Share, WaitTarget};
pub use bounds::Bounds;
pub use cause::{Actor, Cause, MAX_CAUSES};
pub use config::{Config, FutexWaits, Release, Select, Sleeps};
pub(crate) use decomposer::IntHasher;
pub use decomposer::{Counters, Decomposer};
pub use disabled::DisabledSection;
pub use futexes::FutexRole;
pub use job::{Definition, Flaw, Job, JobKind, Part, Phase, ReleasedBy, Reservation, Segment, Term, Waker};

/// Maximum number of listed waits of a job.
pub const MAX_BLOCKINGS: usize = 32;
/// Maximum number of distinct shares of a wait.
pub const MAX_SHARES: usize = 16;
/// Maximum number of listed segments of a job.
pub const MAX_SEGMENTS: usize = 1024;
