//! What a machine does to real-time threads, and what can be done about it.
//!
//! * [`facts`] reads the machine: CPUs, interrupts, threads, control groups, the kernel and how it was booted; from `/proc` and
//!   `/sys`, or from a recording of them ([`tree`]).
//! * [`doctor`] says what stands between a real-time thread and its deadline, and how to remove it.
//! * [`isolate`] takes CPUs from the rest of the system, and gives them back.
//! * [`offline`] runs a program without Linux on a CPU that Linux gave up.
//! * [`change`] changes settings so that they can be changed back, whatever happens to the process that changed them.
//!
//! ```
//! use punctual_isolate::doctor::{Scene, examine};
//! use punctual_isolate::facts::Machine;
//! use punctual_isolate::tree::Tree;
//!
//! let machine = Machine::look(Tree::system());
//! let report = examine(&Scene::new(&machine));
//! for finding in &report.findings {
//!     println!("{}: {}", finding.check, finding.found);
//! }
//! ```

pub mod change;
pub mod cpus;
pub mod doctor;
pub mod facts;
pub mod isolate;
pub mod offline;
pub mod tree;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
