//! Contents of a trace.dat, and its constants and texts, which capture directories share.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::PathBuf;

/// Option IDs, which are also those of the sections they point to.
pub(crate) mod id {
    pub(crate) const DONE: u16 = 0;
    pub(crate) const CPUSTAT: u16 = 2;
    pub(crate) const BUFFER: u16 = 3;
    pub(crate) const TRACECLOCK: u16 = 4;
    pub(crate) const UNAME: u16 = 5;
    pub(crate) const CPUCOUNT: u16 = 8;
    pub(crate) const VERSION: u16 = 9;
    pub(crate) const TSC2NSEC: u16 = 14;
    pub(crate) const STRINGS: u16 = 15;
    pub(crate) const HEADER_INFO: u16 = 16;
    pub(crate) const FTRACE_EVENTS: u16 = 17;
    pub(crate) const EVENT_FORMATS: u16 = 18;
    pub(crate) const KALLSYMS: u16 = 19;
    pub(crate) const PRINTK: u16 = 20;
    pub(crate) const CMDLINES: u16 = 21;
}

/// The beginning of the version text of recorders that declare, on the following lines, which
/// events they recorded.
pub(crate) const WRITER: &str = "punctual-trace\n";

/// The clock in use: the one in brackets, or the whole text if none exist.
pub(crate) fn clock_of(text: &str) -> &str {
    let text = text.trim().trim_end_matches('\0');
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(clock, _)| clock)
}

/// Returns the recorder's declaration of its events, of the threads' processes and of their
/// reservations, which is one text in a file.
pub(crate) fn declared(recorded: &[u8], saved_tgids: &[u8], saved_reservations: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(recorded).into_owned();
    for (begin, lines) in [(PROCESS, saved_tgids), (RESERVATION, saved_reservations)] {
        for line in String::from_utf8_lossy(lines).lines() {
            text += &format!("{begin}{line}\n");
        }
    }
    text
}

/// The beginning of a line with the numbers of a thread and of its process.
pub(crate) const PROCESS: &str = "process ";

/// The beginning of a line with the number of a SCHED_DEADLINE thread, its runtime, deadline and
/// period in ns.
pub(crate) const RESERVATION: &str = "reservation ";

/// A group of events and the texts of their formats.
pub(crate) type Group = (String, Vec<Vec<u8>>);

/// Contents of a trace.dat.
pub(crate) struct Content {
    /// Size in bytes of a `long` of the traced kernel.
    pub(crate) long: u8,
    pub(crate) header_page: Vec<u8>,
    pub(crate) header_event: Vec<u8>,
    pub(crate) groups: Vec<Group>,
    pub(crate) symbols: Vec<u8>,
    pub(crate) printk: Vec<u8>,
    pub(crate) names: Vec<u8>,
    /// The clocks, with that of the trace in brackets.
    pub(crate) clocks: Vec<u8>,
    pub(crate) system: Vec<u8>,
    /// The option with the factor, shift and offset that convert times to ns.
    pub(crate) scale: Option<[u8; 16]>,
    /// The recorder's declaration of recorded events.
    pub(crate) declared: Option<String>,
    pub(crate) statistics: Vec<String>,
    /// Page size.
    pub(crate) page: usize,
    pub(crate) buffers: Vec<Buffer>,
}

/// A ring buffer.
pub(crate) struct Buffer {
    pub(crate) name: String,
    pub(crate) clock: String,
    /// Each CPU and its pages.
    pub(crate) cpus: Vec<(u32, Pages)>,
}

/// Pages in another trace.
pub(crate) trait Part {
    /// Returns the path for errors.
    fn path(&self) -> PathBuf;

    /// Returns a reader of the decompressed pages.
    fn read(&self) -> Box<dyn Read + Send>;
}

/// Location of the pages of a CPU.
pub(crate) enum Pages {
    /// An open file and its size in bytes; its path is for errors.
    File(File, PathBuf, u64),
    /// Part of another trace, with its decompressed size in bytes.
    Part(Box<dyn Part>, u64),
}

impl Pages {
    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::File(_, _, length) | Self::Part(_, length) => *length,
        }
    }

    /// Returns the path for errors.
    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Self::File(_, path, _) => path.clone(),
            Self::Part(part, _) => part.path(),
        }
    }

    /// Copies the first `length` bytes to the current position of `out`, and returns the number of
    /// bytes copied.
    pub(crate) fn copy(&self, length: u64, out: &mut File) -> io::Result<u64> {
        match self {
            // The kernel copies from file to file.
            Self::File(file, ..) => {
                let mut file = file;
                file.rewind()?;
                io::copy(&mut file.take(length), out)
            }
            Self::Part(part, _) => io::copy(&mut part.read().take(length), out),
        }
    }
}
