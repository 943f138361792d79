//! Examples of `punctual` that have a `main` of their own, and what these use of `std` besides what `core` and `alloc` have.

use core::fmt::Debug;

use punctual_bare::println;

/// Makes the example of this name, which [`build.rs`](../build.rs) has copied, the program.
#[macro_export]
macro_rules! with_main {
    ($example:literal) => {
        mod example {
            #[allow(unused_imports)]
            use $crate as std;
            #[allow(unused_imports)]
            use $crate::prelude::*;

            include!(concat!(env!("OUT_DIR"), "/", $example, ".rs"));

            /// Runs it.
            pub(crate) fn start() -> ! {
                $crate::own_main::end(main())
            }
        }

        punctual_bare::entry!(example::start);
    };
}

/// What a `main` may return.
pub trait Termination {
    /// The code that the program ends with.
    fn code(self) -> u8;
}

impl Termination for () {
    fn code(self) -> u8 {
        0
    }
}

/// As that of `std`.
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

/// Ends the program as `main` says.
pub fn end(result: impl Termination) -> ! {
    punctual_bare::exit(result.code().into())
}
