//! Support for the programs: pins, measurements, and the items of `std` that examples use.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc as allocation;

// Items that examples import from `std`, resolved by `extern crate programs as std`.
#[cfg(feature = "alloc")]
#[doc(hidden)]
pub use allocation::{collections, rc};
#[doc(hidden)]
pub use core::*;

#[cfg(feature = "app")]
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
#[cfg(all(feature = "app", not(feature = "raspberry-pi")))]
#[path = "pins/virt.rs"]
pub mod pins;

#[cfg(feature = "app")]
pub mod acceptance;
#[cfg(feature = "app")]
pub mod bench;
#[cfg(feature = "app")]
pub mod bystander;
#[cfg(feature = "app")]
pub mod cycles;
#[cfg(feature = "app")]
pub mod float;
#[cfg(feature = "app")]
pub mod kernel_bench;
#[cfg(all(feature = "app", not(feature = "raspberry-pi")))]
pub mod latency;
#[cfg(feature = "app")]
pub mod own_main;
