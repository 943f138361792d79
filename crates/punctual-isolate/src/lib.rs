//! The effects of a machine on real-time threads, and their remedies.
//!
//! * [`facts`] reads the machine: CPUs, interrupts, threads, control groups, the kernel and its
//!   boot parameters; from `/proc` and `/sys`, or from a recording of them ([`tree`]).
//! * [`doctor`] reports conditions that make real-time threads miss deadlines, and how to remove
//!   them.
//! * [`isolate`] isolates CPUs from the rest of the system, and returns them.
//! * [`offline`] runs a program without Linux on a CPU that Linux gave up.
//! * [`change`] makes reversible changes of settings, robust against the death of the process that
//!   makes them.
//!
//! ```
//! use punctual_isolate::doctor::{Scene, examine};
//! use punctual_isolate::facts::Machine;
//! use punctual_isolate::tree::Tree;
//!
//! let machine = Machine::read(Tree::system());
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
