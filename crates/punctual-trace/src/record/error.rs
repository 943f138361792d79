//! The reasons why nothing is recorded, or less than requested.

use std::io;
use std::path::{Path, PathBuf};

/// An error that prevents a recording or ends it early. Every message contains a remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// tracefs is not mounted.
    #[error(
        "tracefs is not mounted; mount it as root with `mount -t tracefs nodev /sys/kernel/tracing` (a kernel without \
         CONFIG_FTRACE has none)"
    )]
    NoTracefs,
    /// The system does not allow this process to trace.
    #[error(
        "{path}: permission denied; record as root, or with CAP_DAC_OVERRIDE and a kernel that is not locked down"
    )]
    Permission {
        /// The path that cannot be opened, written or created.
        path: PathBuf,
    },
    /// The kernel lacks an event that the analysis requires.
    #[error(
        "the kernel has no event {}, which the analysis requires; use a kernel with CONFIG_EVENT_TRACING",
        .events.join(", ")
    )]
    MissingEvents {
        /// The events, as `group:event`.
        events: Vec<String>,
    },
    /// The kernel has no such event.
    #[error(
        "the kernel has no event `{pattern}`; choose from the directories in /sys/kernel/tracing/events, as GROUP:EVENT"
    )]
    Tracepoint {
        /// The requested pattern.
        pattern: String,
    },
    /// The kernel has no such clock.
    #[error("the kernel has no trace clock `{clock}`; choose one of: {available}")]
    Clock {
        /// The requested clock.
        clock: String,
        /// The available clocks.
        available: String,
    },
    /// The kernel has this clock, but it does not count nanoseconds.
    #[error(
        "the trace clock `{clock}` counts {counted}, which cannot be converted to time; choose one of: {available}"
    )]
    NoTime {
        /// The requested clock.
        clock: String,
        /// The unit of its times.
        counted: &'static str,
        /// The clocks that can be used.
        available: String,
    },
    /// There is no such process.
    #[error(
        "there is no process or thread {process}; give the number of one that runs, or a command to start"
    )]
    UnknownProcess {
        /// Its number.
        process: u32,
    },
    /// A filter is invalid, or the kernel rejects it.
    #[error("the filter `{filter}` cannot be used: {why}")]
    Filter {
        /// The filter.
        filter: String,
        /// The reason.
        why: String,
    },
    /// The CPU does not exist, or it is offline.
    #[error("CPU {cpu} does not exist or is offline; choose one of /sys/devices/system/cpu/online")]
    Cpu {
        /// The number of the CPU.
        cpu: u32,
    },
    /// The disk is full. The events recorded before are stored and can be read.
    #[error(
        "the disk is full; what was recorded before is in {directory} and can be read. Make room, or record fewer events \
         or to another disk"
    )]
    DiskFull {
        /// The directory of the recording.
        directory: PathBuf,
    },
    /// The directory cannot be written.
    #[error("{path}: {error}; choose a writable directory with enough space")]
    Output {
        /// The file that could not be written.
        path: PathBuf,
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// The kernel rejected another operation.
    #[error("{path}: {attempt}: {error}")]
    Kernel {
        /// The file of tracefs.
        path: PathBuf,
        /// The attempted operation.
        attempt: &'static str,
        /// The kernel's error.
        #[source]
        error: io::Error,
    },
    /// The kernel rejected the BPF programs.
    #[error("{attempt}: {what}; {}", bpf_remedy(*.denied))]
    Bpf {
        /// The attempted operation.
        attempt: &'static str,
        /// True if privileges are missing.
        denied: bool,
        /// The kernel's error.
        what: String,
    },
    /// The system could not create a thread or a pipe.
    #[error("{attempt}: {error}")]
    System {
        /// The attempted operation.
        attempt: &'static str,
        /// The system's error.
        #[source]
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

    /// Converts an error that precedes the first event: the directory contains none to read.
    pub(super) fn without_events(self) -> Self {
        match self {
            Self::DiskFull { directory: path } => {
                Self::Output { path, error: io::ErrorKind::StorageFull.into() }
            }
            other => other,
        }
    }
}

/// Returns the remedy for rejected BPF programs.
fn bpf_remedy(denied: bool) -> &'static str {
    if denied {
        "record as root, or with CAP_BPF and CAP_PERFMON and a kernel that is not locked down, or leave out the group \
         `schedule`"
    } else {
        "leave out the group `schedule`, or if memory is short, choose smaller buffers or fewer CPUs"
    }
}
