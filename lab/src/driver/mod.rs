//! Running a program on one machine.
//!
//! [`stage`] packs the files, with [`cpio`]; [`machine`] generates QEMU's options; [`guest`] runs
//! one machine and uses its [`console`] to diagnose failures. [`board`] runs on a real machine
//! instead, over ssh.

pub(crate) mod board;
pub(crate) mod console;
mod cpio;
pub(crate) mod guest;
pub(crate) mod machine;
pub(crate) mod stage;
