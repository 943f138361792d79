//! The pins that the programs use, of each board.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;

// What examples that allocate say `std` for, which they find by `extern crate programs as std`.
#[cfg(feature = "alloc")]
#[doc(hidden)]
pub use {
    alloc::{collections, rc},
    core::{cell, future, mem, task},
};

#[doc(hidden)]
pub mod process {
    pub use crate::own_main::ExitCode;
}

/// What is in scope everywhere where there is `std`.
#[doc(hidden)]
pub mod prelude {
    #[cfg(feature = "alloc")]
    pub use alloc::{
        borrow::ToOwned,
        boxed::Box,
        string::{String, ToString},
        vec::Vec,
    };
}

#[cfg(feature = "raspberry-pi")]
#[path = "pins/raspberry_pi.rs"]
pub mod pins;
#[cfg(not(feature = "raspberry-pi"))]
#[path = "pins/virt.rs"]
pub mod pins;

pub mod bench;
pub mod bystander;
pub mod cycles;
pub mod float;
pub mod kernel_bench;
#[cfg(not(feature = "raspberry-pi"))]
pub mod latency;
pub mod own_main;
