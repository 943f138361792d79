//! Exports jobs for other programs (CSV and JSON per job, a Perfetto trace) and for people ([a
//! page](html) and [tables](table)).
//!
//! ```
//! # use punctual_trace::event::{Event, Kind, SwitchOut, Task};
//! # use punctual_trace::jobs::{Config, Decomposer};
//! use punctual_trace_report::export::Csv;
//! use punctual_trace::names::Names;
//!
//! # let (control, idle) = (Task { id: 7, priority: 10 }, Task { id: 0, priority: 120 });
//! # let event = |time, by, kind| Event { time, cpu: 0, by, kind };
//! # let trace = [
//! #     event(100, 0, Kind::Waking { task: control, cpu: 0 }),
//! #     event(130, 0, Kind::Switch { from: idle, reason: SwitchOut::Runnable, to: control }),
//! #     event(230, 7, Kind::Switch { from: control, reason: SwitchOut::Sleeping, to: idle }),
//! # ];
//! # let mut jobs = Vec::new();
//! # let mut decomposer = Decomposer::new(Config::default());
//! # trace.iter().for_each(|event| decomposer.feed(event, &mut |job| jobs.push(job.clone())));
//! let names = Names::new();
//! let mut csv = Csv::new(Vec::new())?;
//! for job in &jobs {
//!     csv.job(job, &names)?;
//! }
//! let text = String::from_utf8(csv.finish()?).unwrap();
//! let line = text.lines().nth(1).unwrap();
//! assert!(line.starts_with("2,0,thread,7,7,,"), "{line}");
//! # Ok::<(), std::io::Error>(())
//! ```

mod chain;
mod csv;
pub mod html;
mod json;
mod perfetto;
mod proto;
pub mod table;

pub use chain::{chain_table, crossing};
pub use csv::{Column, Csv, columns};
pub(crate) use json::phase_name;
pub use json::{captured_job, captured_job_object, json};
pub use perfetto::Perfetto;

/// Version of the CSV columns and JSON members. It increases when one changes its meaning or is
/// removed, not when one is added.
pub const VERSION: u32 = 2;

use punctual_trace::jobs::{Flaw, JobKind, ReleasedBy};

fn kind_name(kind: JobKind) -> &'static str {
    match kind {
        JobKind::Thread => "thread",
        JobKind::IrqThread => "irq-thread",
        JobKind::Irq => "irq",
        JobKind::Vector => "vector",
        JobKind::Softirq => "softirq",
        JobKind::Offline => "offline",
    }
}

fn release_name(by: ReleasedBy) -> &'static str {
    match by {
        ReleasedBy::Timer => "timer",
        ReleasedBy::Mark => "mark",
        ReleasedBy::Wake => "wake",
        ReleasedBy::New => "new",
        ReleasedBy::Budget => "period",
        ReleasedBy::Unseen => "unseen",
    }
}

fn flaw_name(flaw: Option<Flaw>) -> &'static str {
    match flaw {
        None => "",
        Some(Flaw::Lost) => "lost",
        Some(Flaw::Contradiction) => "contradiction",
        Some(Flaw::Cut) => "cut",
    }
}
