//! The pins that the programs use, for each board.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc as allocation;

// Items that examples import from `std`, resolved by `extern crate programs as std`.
#[cfg(feature = "alloc")]
#[doc(hidden)]
pub use allocation::{collections, rc};
#[doc(hidden)]
pub use core::*;

#[doc(hidden)]
pub mod process {
    pub use crate::own_main::ExitCode;
}

/// Items that are in scope everywhere if `std` is available.
#[doc(hidden)]
pub mod prelude {
    #[cfg(feature = "alloc")]
    pub use allocation::{
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

pub mod acceptance;
pub mod bench;
pub mod bystander;
pub mod cycles;
pub mod float;
pub mod kernel_bench;
#[cfg(not(feature = "raspberry-pi"))]
pub mod latency;
pub mod own_main;
