//! Reading of traces: from files and directories to [events](crate::event), in order of time.
//!
//! Each layer uses only the layers below it. [`mod@format`] describes binary layouts, [`page`]
//! decodes pages into records, [`translate`] converts records to events, [`merge`] merges the CPUs,
//! and [`dat`] and [`raw`] locate everything in a file or a directory. [`Trace`] combines them:
//!
//! ```no_run
//! use punctual_trace::event::Kind;
//! use punctual_trace::read::Trace;
//!
//! let trace = Trace::open("trace.dat".as_ref())?;
//! let mut events = trace.events()?;
//! let mut switches = 0;
//! while let Some(event) = events.next() {
//!     match event {
//!         Ok(event) => switches += u64::from(matches!(event.kind, Kind::Switch { .. })),
//!         Err(problem) => eprintln!("{problem}"), // the data of one CPU ends here, the others go on
//!     }
//! }
//! println!("{switches} switches between {} threads", events.threads().iter().count());
//! # Ok::<(), punctual_trace::read::ReadError>(())
//! ```

pub(crate) mod clock;
mod ctf;
pub mod dat;
mod error;
pub mod marker;
pub mod merge;
pub(crate) mod perf;
pub mod raw;
pub(crate) mod records;
pub(crate) mod store;
mod stream;
pub(crate) mod trace;
pub mod translate;

pub use error::{Place, ReadError};
pub use trace::{Buffer, Events, Recorder, Trace};

pub use crate::format::{Bytes, Order, Range, fields as format, page};
