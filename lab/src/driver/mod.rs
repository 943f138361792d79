//! Running a program on one machine.
//!
//! [`stage`] packs what runs, with [`cpio`]; [`machine`] knows QEMU's options; [`guest`] runs one machine and finds out
//! by its [`console`] what went wrong. [`board`] runs on a real machine instead, over ssh.

pub(crate) mod board;
pub(crate) mod console;
mod cpio;
pub(crate) mod guest;
pub(crate) mod machine;
pub(crate) mod stage;
