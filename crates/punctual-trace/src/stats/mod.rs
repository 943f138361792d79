//! Aggregates jobs, in constant memory per task: running histograms of every term, full captures of
//! the worst jobs, and alarms.
//!
//! ```
//! use punctual_trace::event::{Event, Kind, SwitchOut, Task};
//! use punctual_trace::jobs::Config;
//! use punctual_trace::stats::{Term, Watch};
//!
//! let (control, idle) = (Task { id: 7, priority: 10 }, Task { id: 0, priority: 120 });
//! let event = |time, by, kind| Event { time, cpu: 0, by, kind };
//! let mut watch = Watch::new(Config::default(), 3);
//! watch.default_deadline(Some(1_000));
//!
//! let mut alarms = 0;
//! for (release, length) in [(10_000, 500), (20_000, 2_500), (30_000, 600)] {
//!     let end = release + length;
//!     let mut feed = |event| watch.feed(&event, &mut |_job| {}, &mut |_late| alarms += 1);
//!     feed(event(release, 0, Kind::Waking { task: control, cpu: 0 }));
//!     feed(event(release + 100, 0, Kind::Switch { from: idle, reason: SwitchOut::Runnable, to: control }));
//!     feed(event(end, 7, Kind::Switch { from: control, reason: SwitchOut::Sleeping, to: idle }));
//! }
//! assert_eq!(alarms, 1);
//! let task = &watch.tasks()[0];
//! let response = task.summary(Term::Response);
//! assert_eq!((response.max, response.count), (2_500, 3));
//! assert_eq!(task.worst()[0].job.end, 22_500);
//! assert_eq!(task.worst()[0].events.len(), 3);
//! ```

mod quantity;
mod recent;
mod task;
mod watch;

pub use quantity::{Quantity, Summary};
pub use recent::{CapturedJob, MAX_EVENTS};
pub use task::{Key, TaskId, TaskStats};
pub use watch::{MAX_TASKS, Watch};

pub use crate::jobs::Term;
