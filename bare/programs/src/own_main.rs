//! Support for examples of `punctual` with their own `main`: the items of `std` that they use
//! beyond `core` and `alloc`.

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
