//! Writes trace.dat files, from recordings or synthetic events, that `trace-cmd report` and
//! KernelShark open.
//!
//! [`dat`] turns a capture directory into a file. [`synthetic`] turns [events](crate::event) into a
//! capture directory, to test and measure readers and analyses with traces whose correct result is
//! known. [`page`] and [`encode`] are its parts: pages of the ring buffer, and records.
//!
//! ```
//! use punctual_trace::event::{Event, Kind};
//! use punctual_trace::read::Trace;
//! use punctual_trace::write::{dat, synthetic::Synthetic};
//!
//! # let place = std::env::temp_dir().join(format!("punctual-write-{}", std::process::id()));
//! # std::fs::create_dir_all(&place)?;
//! let (directory, file) = (place.join("raw"), place.join("trace.dat"));
//! let event = Event { time: 1_000, cpu: 1, by: 17, kind: Kind::IrqEntry { irq: 24 } };
//! let mut synthetic = Synthetic::create(&directory)?;
//! synthetic.push(&event)?;
//! synthetic.finish()?;
//! dat::write(&directory, &file)?;
//!
//! let events: Vec<_> = Trace::open(&file)?.events()?.collect::<Result<_, _>>()?;
//! assert_eq!(events, [event]);
//! # std::fs::remove_dir_all(&place)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod dat;
mod directory;
pub mod encode;
mod error;
pub mod formats;
mod moving;
mod sections;
pub mod synthetic;

pub use error::WriteError;

pub use crate::format::page_writer as page;
