//! The format of the marks that an app writes into a kernel trace: starts and ends of jobs, and names of tasks.
//!
//! Each mark is one `write(2)` to a file `trace_marker_raw`. Its first four bytes are its type; the kernel adds time, CPU and
//! thread. All numbers are in native byte order:
//!
//! | bytes | start | end | name |
//! |---|---|---|---|
//! | 0 to 3 | `0x504a_0001` | `0x504a_0002` | `0x504a_0003` |
//! | 4, 5 | task | task | task |
//! | 6, 7 | 0 | 0 | length |
//! | 8 … | release, 8 bytes | | UTF-8 |
//!
//! `punctual` writes marks and `punctual-trace` reads them, both by this module.
//!
//! ```
//! use punctual_core::trace_marker::{self, Mark};
//!
//! let bytes = trace_marker::start(3, 1_000_000);
//! let id = u32::from_ne_bytes(bytes[..4].try_into()?);
//! let mark = Mark::read(id, &bytes[4..], cfg!(target_endian = "big"));
//! assert_eq!(mark, Some(Mark::Start { task: 3, released: 1_000_000 }));
//! # Ok::<(), std::array::TryFromSliceError>(())
//! ```

/// The type of a job start: `PJ` and a number.
pub const START: u32 = 0x504a_0001;
/// The type of a job end.
pub const END: u32 = 0x504a_0002;
/// The type of a task name.
pub const NAME: u32 = 0x504a_0003;

/// The longest name in a mark, in bytes.
pub const MAX_NAME_LEN: usize = 120;

/// Bytes before a name or a release.
const HEAD: usize = 8;
const BIG_ENDIAN: bool = cfg!(target_endian = "big");

/// Marks the start of a job of task number `task`, released at `released` ns of `CLOCK_MONOTONIC`.
///
/// Real-time safety: neither this nor [`end`] allocates, blocks or enters the kernel; writing the bytes does that.
#[inline]
pub fn start(task: u16, released: u64) -> Bytes {
    Mark::Start { task, released }.write(BIG_ENDIAN)
}

/// Marks the end of a job of task number `task`.
#[inline]
pub fn end(task: u16) -> Bytes {
    Mark::End { task }.write(BIG_ENDIAN)
}

/// Names task number `task`. Cuts the name off after [`MAX_NAME_LEN`] bytes.
pub fn name(task: u16, name: &str) -> Bytes {
    let mut length = name.len().min(MAX_NAME_LEN);
    while !name.is_char_boundary(length) {
        length -= 1;
    }
    Mark::Name { task, name: &name.as_bytes()[..length] }.write(BIG_ENDIAN)
}

/// The bytes of a mark.
#[derive(Debug, Clone, Copy)]
pub struct Bytes {
    bytes: [u8; HEAD + MAX_NAME_LEN],
    length: usize,
}

impl core::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// A mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark<'a> {
    /// A job starts.
    Start {
        /// The number of its task.
        task: u16,
        /// When it was released, in ns by `CLOCK_MONOTONIC`.
        released: u64,
    },
    /// A job ends.
    End {
        /// The number of its task.
        task: u16,
    },
    /// A task has a name.
    Name {
        /// The task's number.
        task: u16,
        /// Its name in UTF-8, if whoever wrote it kept to that.
        name: &'a [u8],
    },
}

impl<'a> Mark<'a> {
    /// The mark as a machine of that order of bytes writes it; of a name, the first [`MAX_NAME_LEN`] bytes.
    #[inline]
    pub fn write(self, big_endian: bool) -> Bytes {
        let (id, task) = match self {
            Self::Start { task, .. } => (START, task),
            Self::End { task } => (END, task),
            Self::Name { task, .. } => (NAME, task),
        };
        let mut bytes = [0; HEAD + MAX_NAME_LEN];
        let short = |value: u16| if big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
        bytes[..4].copy_from_slice(&if big_endian { id.to_be_bytes() } else { id.to_le_bytes() });
        bytes[4..6].copy_from_slice(&short(task));
        let more = match self {
            Self::Start { released: ns, .. } => {
                let ns = if big_endian { ns.to_be_bytes() } else { ns.to_le_bytes() };
                bytes[HEAD..][..8].copy_from_slice(&ns);
                8
            }
            Self::End { .. } => 0,
            Self::Name { name, .. } => {
                let name = &name[..name.len().min(MAX_NAME_LEN)];
                bytes[6..8].copy_from_slice(&short(name.len() as u16));
                bytes[HEAD..][..name.len()].copy_from_slice(name);
                name.len()
            }
        };
        Bytes { bytes, length: HEAD + more }
    }

    /// Reads what follows the first four bytes, which are `id`, as a machine of that order of bytes wrote it. `None` if it is
    /// no mark, or one that was cut off. There may be more bytes than it has: the kernel fills up.
    pub fn read(id: u32, content: &'a [u8], big_endian: bool) -> Option<Self> {
        let short = |at: usize| {
            let bytes = *content.get(at..)?.first_chunk::<2>()?;
            Some(if big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
        };
        let task = short(0)?;
        match id {
            START => {
                let bytes = *content.get(4..)?.first_chunk::<8>()?;
                let released = if big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) };
                Some(Self::Start { task, released })
            }
            END => Some(Self::End { task }),
            NAME => Some(Self::Name { task, name: content.get(4..)?.get(..usize::from(short(2)?))? }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Option<Mark<'_>> {
        Mark::read(u32::from_ne_bytes(*bytes.first_chunk()?), &bytes[4..], BIG_ENDIAN)
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(read(&start(9, u64::MAX)), Some(Mark::Start { task: 9, released: u64::MAX }));
        assert_eq!(read(&end(u16::MAX)), Some(Mark::End { task: u16::MAX }));
        assert_eq!(read(&name(1, "sample")), Some(Mark::Name { task: 1, name: b"sample" }));
        assert_eq!(read(&name(1, "")), Some(Mark::Name { task: 1, name: b"" }));
    }

    #[test]
    fn the_other_order_of_bytes() {
        let bytes = Mark::Start { task: 0x0102, released: 3 }.write(true);
        assert_eq!(bytes[..8], [0x50, 0x4a, 0, 1, 1, 2, 0, 0]);
        assert_eq!(Mark::read(START, &bytes[4..], true), Some(Mark::Start { task: 0x0102, released: 3 }));
        assert_eq!(Mark::Start { task: 0x0102, released: 3 }.write(false)[..6], [1, 0, 0x4a, 0x50, 2, 1]);
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let long = "é".repeat(100) + "x";
        let bytes = super::name(1, &long);
        let Some(Mark::Name { name, .. }) = read(&bytes) else { panic!("it is a name") };
        assert_eq!(name, "é".repeat(60).as_bytes());
        let odd = format!("x{long}");
        let bytes = super::name(1, &odd);
        assert_eq!(bytes.len(), HEAD + MAX_NAME_LEN - 1);
        let bytes = Mark::Name { task: 1, name: &[b'x'; MAX_NAME_LEN + 1] }.write(BIG_ENDIAN);
        assert_eq!(read(&bytes), Some(Mark::Name { task: 1, name: &[b'x'; MAX_NAME_LEN] }));
    }

    #[test]
    fn what_was_cut_off_is_no_mark() {
        let (start, end, name) = (start(1, 2), end(1), name(1, "n"));
        for (bytes, least) in [(&start[..], 16), (&end[..], 6), (&name[..], 9)] {
            for length in 4..least {
                assert_eq!(read(&bytes[..length]), None, "{length} of {bytes:?}");
            }
        }
        assert_eq!(Mark::read(7, &[0; 64], BIG_ENDIAN), None);
        // More than it says, as the kernel fills up.
        assert_eq!(read(&[&name[..], &[0; 7]].concat()), Some(Mark::Name { task: 1, name: b"n" }));
    }
}
