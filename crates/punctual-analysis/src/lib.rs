//! Bounds on the response times of fixed-priority tasks, with the terms of each bound.
//!
//! Task sets come from apps of Punctual, from recordings, or from files. The crate is pure
//! computation: it reads no clock and opens no file.
//!
//! ```rust
//! use punctual_analysis::{analyze, explain::explain, margin, schema};
//!
//! let system = schema::read("arm.toml", r#"
//!     schema = "punctual-taskset/1"
//!
//!     [[resource]]
//!     name = "voltages"
//!
//!     [[task]]
//!     name = "sample"
//!     level = 2
//!     period = "1ms"
//!     execution = "200us"
//!     sections = [{ resource = "voltages", hold = "10us" }]
//!
//!     [[task]]
//!     name = "log"
//!     level = 1
//!     period = "5ms"
//!     execution = "2ms"
//!     sections = [{ resource = "voltages", hold = "40us" }]
//! "#)?;
//! let analysis = analyze(&system);
//! let sample = analysis.tasks[0].as_ref().unwrap();
//! assert_eq!((sample.response, sample.blocking.unwrap().time), (240_000, 40_000));
//! assert!(explain(&system, &analysis, 0)[1].starts_with("`log` may have just locked `voltages`"));
//! assert_eq!(margin::all_executions(&system).permille, 1_666);
//! # Ok::<(), schema::InputError>(())
//! ```
//!
//! | scheduling | analysis | bound |
//! |---|---|---|
//! | one CPU, preemptive, Stack Resource Policy, jitter, arbitrary deadlines, levels with several tasks | Joseph & Pandya 1986, Lehoczky 1990, Audsley et al. 1993, Tindell et al. 1994, Baker 1991, Martin et al. 2003 | exact |
//! | one CPU that polls | Davis et al. 2007 | exact, unless tasks call each other |
//! | resources of several partitions (MSRP, group locks) | Gai et al. 2001, Block et al. 2007 | sufficient |
//! | tasks with offsets | Tindell 1994, Palencia & González Harbour 1998, Mäki-Turja & Nolin 2008 | sufficient |
//! | chains of spawned tasks | Tindell & Clark 1994, González Harbour & Palencia 1999 | sufficient |
//! | jobs that suspend themselves | Chen et al. 2019 | sufficient |
//! | a CPU that is only partly available | Shin & Lee 2003, Mok et al. 2001 | exact for the supply |
//! | the global executor, without shared resources | Bertogna & Cirinei 2007 | sufficient |
//!
//! Time is continuous. A response is measured from the nominal release, so it includes the task's
//! own jitter. A task whose behavior no published analysis covers has no bound, and
//! [`NoBound`](bound::NoBound) states the reason.

pub mod arrival;
pub mod assign;
pub mod bound;
pub mod chain;
pub mod explain;
pub mod fraction;
mod grid;
pub mod infer;
pub mod json;
pub mod margin;
pub mod measured;
pub mod schedule;
pub mod schema;
pub mod supply;
pub mod system;
pub mod time;
pub mod work;

mod analyze;
mod blocking;
mod branches;
mod demand;
mod global;
mod offsets;
mod polling;
mod preemptive;
mod release;
mod round;
mod suspension;

pub use analyze::{analyze, first_miss, of_run, utilization};
