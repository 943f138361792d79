//! The parts of the gimbal demo that know nothing of threads or clocks.
//!
//! A camera gimbal with two axes, pan and tilt, is held at its setpoints by cascaded controllers: current at
//! 10 kHz inside position at 1 kHz. The gimbal is simulated and sits behind an SPI bus. Wherever time matters
//! it is passed in as nanoseconds, so that the same code runs in real time, in virtual time and in tests.
//!
//! * [`plant`], [`encoder`] and [`device`] are the gimbal, [`frame`] and [`client`] the way to it;
//! * [`bus`] is between them, if they are not in one program;
//! * [`control`] and [`setpoints`] decide what it does;
//! * [`reference`](mod@reference) runs all of these in ideal time, to compare a real run with;
//! * [`log`], [`difference`](mod@difference) and [`report`] keep, compare and show what it did;
//! * [`topics`] tells others of it while it happens, and takes setpoints from them; [`tuning`] has its gains changed;
//! * [`cli`] is the command line, [`program`] runs it, [`output`] prints.

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
pub mod output;
pub mod plant;
pub mod program;
pub mod reference;
pub mod report;
pub mod setpoints;
pub mod summary;
pub mod topics;
pub mod tuning;
