//! The parts of the gimbal demo that use neither threads nor clocks.
//!
//! A camera gimbal with two axes, pan and tilt, is held at its setpoints by cascaded controllers:
//! current at 10 kHz inside position at 1 kHz. The gimbal is simulated and connected by an SPI bus.
//! Functions that depend on time take it as an argument in nanoseconds, so that the same code runs
//! in real time, in virtual time and in tests.
//!
//! * [`plant`], [`encoder`] and [`device`] are the gimbal, [`frame`] and [`client`] the protocol;
//! * [`bus`] connects the two if they are in different programs;
//! * [`control`] and [`setpoints`] determine its motion;
//! * [`reference`](mod@reference) runs all of these in ideal time, for comparison with a real run;
//! * [`log`], [`difference`](mod@difference) and [`report`] record, compare and show the motion;
//! * [`topics`] publishes it during the run and receives setpoints; [`tuning`] changes the gains;
//! * [`cli`] is the command line, [`program`] runs it and prints.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod axes;
pub mod bus;
pub mod cli;
pub mod client;
pub mod control;
pub mod controller;
pub mod device;
pub mod difference;
pub mod encoder;
pub mod frame;
pub mod log;
pub mod plant;
pub mod program;
pub mod reference;
pub mod report;
pub mod setpoints;
pub mod summary;
pub mod topics;
pub mod tuning;
