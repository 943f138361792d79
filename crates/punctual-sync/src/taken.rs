//! The answer to who asks for an end that is not free.

use core::fmt;

/// An end was not given out: it is in use, or where there may be several, as many as there are places for are.
///
/// See [Taking an end](crate#taking-an-end).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken;

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the end is in use: it is free again when the other is dropped; where there may be several, raise `W`")
    }
}

impl core::error::Error for Taken {}
