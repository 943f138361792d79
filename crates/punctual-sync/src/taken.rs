//! The error of asking for an end that is not free.

use core::fmt;

/// An end was not handed out: it is in use; or, if several may exist, every place is in use.
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
