//! A record: message, origin and time, in a fixed size.

use std::fmt::{self, Display, Formatter};
use std::mem::MaybeUninit;

use log::{Level, Metadata};

use crate::port::linux::{notice, stderr};

/// Maximum size of the arguments of a record, in bytes.
const ROOM: usize = 104;

/// A source location that logs. A static of the code that [`log!`](crate::log) generates.
#[derive(Debug)]
pub struct Site {
    level: Level,
    module: &'static str,
    file: &'static str,
    line: u32,
}

impl Site {
    /// Creates a location from the values that `log!` provides.
    pub const fn new(level: Level, module: &'static str, file: &'static str, line: u32) -> Self {
        Self { level, module, file, line }
    }
}

/// A message whose arguments have been copied.
pub trait Format: FnOnce(&mut Formatter<'_>) -> fmt::Result + Copy + Send + 'static {}

impl<F: FnOnce(&mut Formatter<'_>) -> fmt::Result + Copy + Send + 'static> Format for F {}

/// Storage of the arguments.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Room(MaybeUninit<[u8; ROOM]>);

/// A message that waits to be written.
#[derive(Clone, Copy)]
pub(crate) struct Record {
    site: &'static Site,
    /// In ns of `CLOCK_MONOTONIC`, or of virtual time.
    at: u64,
    format: unsafe fn(&Room, &mut Formatter<'_>) -> fmt::Result,
    arguments: Room,
}

// SAFETY: the arguments are `Send`, by the bound of `new`; the rest are numbers and references to
// statics.
unsafe impl Send for Record {}

impl Record {
    #[inline]
    pub(crate) fn new<F: Format>(site: &'static Site, at: u64, message: F) -> Self {
        const {
            assert!(
                size_of::<F>() <= ROOM,
                "the arguments of `punctual::log!` may take up to 104 bytes; send less, or a `&'static` reference"
            );
            assert!(
                align_of::<F>() <= align_of::<Room>(),
                "the arguments of `punctual::log!` may be aligned to up to 8 bytes"
            );
        }
        let mut arguments = Room(MaybeUninit::uninit());
        // SAFETY: the assertions ensure that it fits.
        unsafe { (&raw mut arguments).cast::<F>().write(message) };
        // SAFETY: it is called with the buffer that was just filled, or a copy of it, which is
        // valid because `F` is `Copy`.
        let format = |room: &Room, f: &mut Formatter<'_>| unsafe { (&raw const *room).cast::<F>().read()(f) };
        Self { site, at, format, arguments }
    }

    /// Returns the time of the record.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Passes it to the program's logger, or writes it to standard error if there is none.
    pub(crate) fn write(&self) {
        let Site { level, module, file, line } = *self.site;
        if !notice::has_logger() {
            return stderr::text(format_args!("{level} {module}: {self}\n"));
        }
        let metadata = Metadata::builder().level(level).target(module).build();
        let logger = log::logger();
        if logger.enabled(&metadata) {
            let at = ("at_ns", self.at);
            let mut record = log::Record::builder();
            record
                .metadata(metadata)
                .module_path_static(Some(module))
                .file_static(Some(file))
                .line(Some(line));
            logger.log(&record.key_values(&at).args(format_args!("{self}")).build());
        }
    }
}

impl Display for Record {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // SAFETY: `new` stored the type that this function expects.
        unsafe { (self.format)(&self.arguments, f) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_takes_two_cache_lines_and_copies_exactly() {
        static SITE: Site = Site::new(Level::Info, "module", "file", 3);
        assert_eq!(size_of::<Record>(), 128);
        let (words, number) = ([1_u64, 2, 3], 4.5_f32);
        let record = Record::new(&SITE, 7, move |f: &mut Formatter<'_>| write!(f, "{words:?} {number}"));
        let copy = record;
        assert_eq!(
            (record.to_string().as_str(), copy.to_string().as_str()),
            ("[1, 2, 3] 4.5", "[1, 2, 3] 4.5")
        );
    }
}
