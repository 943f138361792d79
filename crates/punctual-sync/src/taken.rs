//! The error returned when an end is not free.

use core::fmt;

/// An end was not handed out: it is in use or, for ends that may exist several times, every slot is
/// in use.
///
/// See [Taking an end](crate#taking-an-end).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken;

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the end is in use: drop the existing end first, or raise `W` if several may exist")
    }
}

impl core::error::Error for Taken {}
