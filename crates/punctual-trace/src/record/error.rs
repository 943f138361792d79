//! The reasons why nothing is recorded, or less than requested.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// An error that prevents a recording or ends it early. Every message contains a remedy.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecordError {
    /// tracefs is not mounted.
    NoTracefs,
    /// The system does not allow this process to trace.
    Permission {
        /// The path that cannot be opened, written or created.
        path: PathBuf,
    },
    /// The kernel lacks an event that the analysis requires.
    MissingEvents {
        /// The events, as `group:event`.
        events: Vec<String>,
    },
    /// The kernel has no such event.
    Tracepoint {
        /// The requested pattern.
        pattern: String,
    },
    /// The kernel has no such clock.
    Clock {
        /// The requested clock.
        clock: String,
        /// The available clocks.
        available: String,
    },
    /// The kernel has this clock, but it does not count nanoseconds.
    NoTime {
        /// The requested clock.
        clock: String,
        /// The unit of its times.
        counted: &'static str,
        /// The clocks that can be used.
        available: String,
    },
    /// There is no such process.
    UnknownProcess {
        /// Its number.
        process: u32,
    },
    /// A filter is invalid, or the kernel rejects it.
    Filter {
        /// The filter.
        filter: String,
        /// The reason.
        why: String,
    },
    /// The CPU does not exist, or it is offline.
    Cpu {
        /// The number of the CPU.
        cpu: u32,
    },
    /// The disk is full. The events recorded before are stored and can be read.
    DiskFull {
        /// The directory of the recording.
        directory: PathBuf,
    },
    /// The directory cannot be written.
    Output {
        /// The file that could not be written.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The kernel rejected another operation.
    Kernel {
        /// The file of tracefs.
        path: PathBuf,
        /// The attempted operation.
        attempt: &'static str,
        /// The kernel's error.
        error: io::Error,
    },
    /// The kernel rejected the BPF programs.
    Bpf {
        /// The attempted operation.
        attempt: &'static str,
        /// True if privileges are missing.
        denied: bool,
        /// The kernel's error.
        what: String,
    },
    /// The system could not create a thread or a pipe.
    System {
        /// The attempted operation.
        attempt: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

impl RecordError {
    /// Converts the kernel's error in an operation on a file of tracefs.
    pub(super) fn kernel(path: &Path, attempt: &'static str, error: io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Permission { path },
            _ => Self::Kernel { path, attempt, error },
        }
    }

    /// Converts the system's error in writing the recording.
    pub(super) fn output(directory: &Path, path: &Path, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::DiskFull { directory: directory.to_owned() }
            }
            _ => Self::Output { path: path.to_owned(), error },
        }
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTracefs => f.write_str(
                "tracefs is not mounted; mount it as root with `mount -t tracefs nodev /sys/kernel/tracing` (a kernel \
                 without CONFIG_FTRACE has none)",
            ),
            Self::Permission { path } => write!(
                f,
                "{}: permission denied; record as root, or with CAP_DAC_OVERRIDE and a kernel that is not locked down",
                path.display()
            ),
            Self::MissingEvents { events } => write!(
                f,
                "the kernel has no event {}, which the analysis requires; use a kernel with \
                 CONFIG_EVENT_TRACING",
                events.join(", ")
            ),
            Self::Tracepoint { pattern } => write!(
                f,
                "the kernel has no event `{pattern}`; choose from the directories in /sys/kernel/tracing/events, as GROUP:EVENT"
            ),
            Self::Clock { clock, available } => {
                write!(f, "the kernel has no trace clock `{clock}`; choose one of: {available}")
            }
            Self::NoTime { clock, counted, available } => write!(
                f,
                "the trace clock `{clock}` counts {counted}, which cannot be converted to time; \
                 choose one of: {available}"
            ),
            Self::UnknownProcess { process } => write!(
                f,
                "there is no process or thread {process}; give the number of one that runs, or a command to start"
            ),
            Self::Filter { filter, why } => write!(f, "the filter `{filter}` cannot be used: {why}"),
            Self::Cpu { cpu } => {
                write!(f, "CPU {cpu} does not exist or is offline; choose one of /sys/devices/system/cpu/online")
            }
            Self::DiskFull { directory } => write!(
                f,
                "the disk is full; what was recorded before is in {} and can be read. Make room, or record fewer events \
                 or to another disk",
                directory.display()
            ),
            Self::Output { path, error } => {
                write!(f, "{}: {error}; choose a writable directory", path.display())
            }
            Self::Kernel { path, attempt, error } => write!(f, "{}: {attempt}: {error}", path.display()),
            Self::Bpf { attempt, denied: true, what } => write!(
                f,
                "{attempt}: {what}; record as root, or with CAP_BPF and CAP_PERFMON and a kernel that is not locked down, \
                 or leave out the group `schedule`"
            ),
            Self::Bpf { attempt, denied: false, what } => write!(
                f,
                "{attempt}: {what}; leave out the group `schedule`, or if memory is short, choose smaller buffers or fewer \
                 CPUs"
            ),
            Self::System { attempt, error } => write!(f, "{attempt}: {error}"),
        }
    }
}

impl std::error::Error for RecordError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Output { error, .. } | Self::Kernel { error, .. } | Self::System { error, .. } => {
                Some(error)
            }
            _ => None,
        }
    }
}
