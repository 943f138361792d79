//! The format of the markers that an app writes into a kernel trace: starts and ends of jobs, and
//! task names.
//!
//! Each marker is one `write(2)` to a `trace_marker_raw` file. Its first four bytes are its type;
//! the kernel adds time, CPU and thread. All numbers are in native byte order:
//!
//! | bytes | start | end | name | foreign job | lost jobs |
//! |---|---|---|---|---|---|
//! | 0 to 3 | `0x504a_0001` | `0x504a_0002` | `0x504a_0003` | `0x504a_0004` | `0x504a_0005` |
//! | 4, 5 | task | task | task | task | 0 |
//! | 6, 7 | 0 | 0 | length | CPU | CPU |
//! | 8 … | release, 8 bytes | | UTF-8 | release, start, end, preempted: 8 bytes each | count, 8 bytes |
//!
//! A *foreign* job has run on a CPU that Linux gave up. A thread on Linux writes its marker later,
//! so the marker contains the job's start and end.
//!
//! `punctual` writes markers and `punctual-trace` reads them, both with this module.
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
/// The type of a complete job on a CPU without Linux.
pub const OFFLINE_JOB: u32 = 0x504a_0004;
/// The type of a count of such jobs that have no marker.
pub const LOST: u32 = 0x504a_0005;

/// The longest name in a marker, in bytes.
pub const MAX_NAME_LEN: usize = 120;

/// Bytes before a name or a release.
const HEAD: usize = 8;
const BIG_ENDIAN: bool = cfg!(target_endian = "big");

/// Marks the start of a job of task number `task`, released at `released` ns of `CLOCK_MONOTONIC`.
///
/// Real-time safety: neither this nor [`end`] allocates, blocks or enters the kernel; writing the
/// bytes does.
#[inline]
pub fn start(task: u16, released: u64) -> Bytes {
    Mark::Start { task, released }.write(BIG_ENDIAN)
}

/// Marks the end of a job of task number `task`.
#[inline]
pub fn end(task: u16) -> Bytes {
    Mark::End { task }.write(BIG_ENDIAN)
}

/// Names task number `task`. Truncates the name to [`MAX_NAME_LEN`] bytes.
pub fn name(task: u16, name: &str) -> Bytes {
    let mut length = name.len().min(MAX_NAME_LEN);
    while !name.is_char_boundary(length) {
        length -= 1;
    }
    Mark::Name { task, name: &name.as_bytes()[..length] }.write(BIG_ENDIAN)
}

/// Marks a job of task number `task` on CPU `cpu`, which Linux does not run.
pub fn offline_job(task: u16, cpu: u16, job: OfflineJob) -> Bytes {
    Mark::OfflineJob { task, cpu, job }.write(BIG_ENDIAN)
}

/// Records that `count` jobs on CPU `cpu`, which Linux does not run, have no marker.
pub fn lost(cpu: u16, count: u64) -> Bytes {
    Mark::Lost { cpu, count }.write(BIG_ENDIAN)
}

/// A job on a CPU without Linux; all values in ns, times on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfflineJob {
    /// Release time.
    pub released: u64,
    /// Start time.
    pub started: u64,
    /// End time.
    pub ended: u64,
    /// Total duration of the jobs that preempted this one.
    pub preempted: u64,
}

/// The bytes of a marker.
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

/// A marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark<'a> {
    /// A job starts.
    Start {
        /// The number of its task.
        task: u16,
        /// Release time, in ns on `CLOCK_MONOTONIC`.
        released: u64,
    },
    /// A job ends.
    End {
        /// The number of its task.
        task: u16,
    },
    /// A task is named.
    Name {
        /// The task's number.
        task: u16,
        /// The name, in UTF-8 unless the writer is faulty.
        name: &'a [u8],
    },
    /// A job has run on a CPU without Linux.
    OfflineJob {
        /// The number of its task.
        task: u16,
        /// The CPU.
        cpu: u16,
        /// The job.
        job: OfflineJob,
    },
    /// Jobs on a CPU without Linux that have no marker.
    Lost {
        /// The CPU.
        cpu: u16,
        /// The number of jobs.
        count: u64,
    },
}

impl<'a> Mark<'a> {
    /// Encodes the marker in the given byte order; truncates a name to [`MAX_NAME_LEN`] bytes.
    #[inline]
    pub fn write(self, big_endian: bool) -> Bytes {
        let (id, task) = match self {
            Self::Start { task, .. } => (START, task),
            Self::End { task } => (END, task),
            Self::Name { task, .. } => (NAME, task),
            Self::OfflineJob { task, .. } => (OFFLINE_JOB, task),
            Self::Lost { .. } => (LOST, 0),
        };
        let mut bytes = [0; HEAD + MAX_NAME_LEN];
        let short = |value: u16| if big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
        bytes[..4].copy_from_slice(&if big_endian { id.to_be_bytes() } else { id.to_le_bytes() });
        bytes[4..6].copy_from_slice(&short(task));
        let mut put = |at: usize, value: u64| {
            let value = if big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
            bytes[HEAD + 8 * at..][..8].copy_from_slice(&value);
        };
        let more = match self {
            Self::Start { released: ns, .. } => {
                put(0, ns);
                8
            }
            Self::End { .. } => 0,
            Self::OfflineJob { cpu, job: OfflineJob { released, started, ended, preempted }, .. } => {
                [released, started, ended, preempted]
                    .into_iter()
                    .enumerate()
                    .for_each(|(at, ns)| put(at, ns));
                bytes[6..8].copy_from_slice(&short(cpu));
                32
            }
            Self::Lost { cpu, count } => {
                put(0, count);
                bytes[6..8].copy_from_slice(&short(cpu));
                8
            }
            Self::Name { name, .. } => {
                let name = &name[..name.len().min(MAX_NAME_LEN)];
                bytes[6..8].copy_from_slice(&short(name.len() as u16));
                bytes[HEAD..][..name.len()].copy_from_slice(name);
                name.len()
            }
        };
        Bytes { bytes, length: HEAD + more }
    }

    /// Decodes the bytes after the first four, which are `id`, in the given byte order. Returns
    /// `None` if they are not a marker, or a truncated one. Extra bytes are ignored, since the
    /// kernel pads the content.
    pub fn read(id: u32, content: &'a [u8], big_endian: bool) -> Option<Self> {
        let short = |at: usize| {
            let bytes = *content.get(at..)?.first_chunk::<2>()?;
            Some(if big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
        };
        let long = |at: usize| {
            let bytes = *content.get(4 + 8 * at..)?.first_chunk::<8>()?;
            Some(if big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
        };
        let task = short(0)?;
        match id {
            START => Some(Self::Start { task, released: long(0)? }),
            OFFLINE_JOB => {
                let [released, started, ended, preempted] = [long(0)?, long(1)?, long(2)?, long(3)?];
                let job = OfflineJob { released, started, ended, preempted };
                Some(Self::OfflineJob { task, cpu: short(2)?, job })
            }
            LOST => Some(Self::Lost { cpu: short(2)?, count: long(0)? }),
            END => Some(Self::End { task }),
            NAME => Some(Self::Name { task, name: content.get(4..)?.get(..usize::from(short(2)?))? }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: OfflineJob = OfflineJob { released: 1, started: u64::MAX, ended: 1 << 40, preempted: 5 };

    fn read(bytes: &[u8]) -> Option<Mark<'_>> {
        Mark::read(u32::from_ne_bytes(*bytes.first_chunk()?), &bytes[4..], BIG_ENDIAN)
    }

    #[test]
    fn round_trips_markers() {
        assert_eq!(read(&start(9, u64::MAX)), Some(Mark::Start { task: 9, released: u64::MAX }));
        assert_eq!(read(&end(u16::MAX)), Some(Mark::End { task: u16::MAX }));
        assert_eq!(read(&name(1, "sample")), Some(Mark::Name { task: 1, name: b"sample" }));
        assert_eq!(read(&name(1, "")), Some(Mark::Name { task: 1, name: b"" }));
        assert_eq!(read(&offline_job(7, 3, JOB)), Some(Mark::OfflineJob { task: 7, cpu: 3, job: JOB }));
        assert_eq!(read(&lost(3, u64::MAX)), Some(Mark::Lost { cpu: 3, count: u64::MAX }));
    }

    #[test]
    fn reads_foreign_byte_order() {
        let bytes = Mark::Start { task: 0x0102, released: 3 }.write(true);
        assert_eq!(bytes[..8], [0x50, 0x4a, 0, 1, 1, 2, 0, 0]);
        assert_eq!(Mark::read(START, &bytes[4..], true), Some(Mark::Start { task: 0x0102, released: 3 }));
        assert_eq!(Mark::Start { task: 0x0102, released: 3 }.write(false)[..6], [1, 0, 0x4a, 0x50, 2, 1]);
        let offline_job = Mark::OfflineJob { task: 1, cpu: 0x0203, job: JOB };
        assert_eq!(Mark::read(OFFLINE_JOB, &offline_job.write(true)[4..], true), Some(offline_job));
        assert_eq!(offline_job.write(true)[4..8], [0, 1, 2, 3]);
    }

    #[test]
    fn truncates_long_name_between_characters() {
        let long = "é".repeat(100) + "x";
        let bytes = super::name(1, &long);
        let Some(Mark::Name { name, .. }) = read(&bytes) else { panic!("not a name") };
        assert_eq!(name, "é".repeat(60).as_bytes());
        let odd = format!("x{long}");
        let bytes = super::name(1, &odd);
        assert_eq!(bytes.len(), HEAD + MAX_NAME_LEN - 1);
        let bytes = Mark::Name { task: 1, name: &[b'x'; MAX_NAME_LEN + 1] }.write(BIG_ENDIAN);
        assert_eq!(read(&bytes), Some(Mark::Name { task: 1, name: &[b'x'; MAX_NAME_LEN] }));
    }

    #[test]
    fn rejects_truncated_markers() {
        let (start, end, name, offline_job, lost) =
            (start(1, 2), end(1), name(1, "n"), offline_job(1, 2, JOB), lost(1, 2));
        let all = [(&start[..], 16), (&end[..], 6), (&name[..], 9), (&offline_job[..], 40), (&lost[..], 16)];
        for (bytes, least) in all {
            for length in 4..least {
                assert_eq!(read(&bytes[..length]), None, "{length} of {bytes:?}");
            }
        }
        assert_eq!(Mark::read(7, &[0; 64], BIG_ENDIAN), None);
        // Longer than its length field, as the kernel pads the content.
        assert_eq!(read(&[&name[..], &[0; 7]].concat()), Some(Mark::Name { task: 1, name: b"n" }));
    }
}
