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

/// Support for examples of `punctual` with their own `main`: the items of `std` that they use
/// beyond `core` and `alloc`.
#[cfg(feature = "app")]
pub mod own_main {
    use core::fmt::Debug;

    use punctual_bare::println;

    /// Return type of `main`.
    pub trait Termination {
        /// Returns the exit code of the program.
        fn code(self) -> u8;
    }

    impl Termination for () {
        fn code(self) -> u8 {
            0
        }
    }

    /// The equivalent of `ExitCode` in `std`.
    #[derive(Clone, Copy, Debug)]
    pub struct ExitCode(u8);

    impl From<u8> for ExitCode {
        fn from(code: u8) -> Self {
            Self(code)
        }
    }

    impl Termination for ExitCode {
        fn code(self) -> u8 {
            self.0
        }
    }

    impl<T: Termination, E: Debug> Termination for Result<T, E> {
        fn code(self) -> u8 {
            match self {
                Ok(value) => value.code(),
                Err(error) => {
                    println!("Error: {error:?}");
                    1
                }
            }
        }
    }

    /// Ends the program with the code that `main` returned.
    pub fn end(result: impl Termination) -> ! {
        punctual_bare::exit(result.code().into())
    }
}
