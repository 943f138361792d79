//! Marks in the kernel's trace: the start and end of each job, with its task.
//!
//! A mark is one `write(2)` of at most 16 bytes to `trace_marker_raw`, which was opened before the
//! first job. It copies them into the CPU's trace buffer and neither sleeps nor allocates. While
//! marks are off, as they are by default, a job checks one word.
//!
//! `user_events`, whose bit the kernel sets while a recorder is active, is no alternative: kernels
//! before 6.4 lack it, and later ones can be built without it, while this file has been in every
//! tracing kernel since 4.10.

use std::fs;
use std::io::Error;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_core::trace_marker;
use rustix::io::Errno;

/// Destination of the marks for one task's jobs, if any.
#[derive(Debug)]
pub(crate) struct Mark(AtomicU64);

/// Set in addition to the task number and the descriptor, either of which may be 0.
const ON: u64 = 1 << 16;
/// The jobs of the task are profiled, whether they are marked or not.
const PROFILED: u64 = 1 << 17;
/// The start and end of the task's jobs are reported to a supervisor.
const SUPERVISED: u64 = 1 << 18;
/// The guard watches the jobs of the task.
const GUARDED: u64 = 1 << 19;

impl Mark {
    pub(crate) const fn off() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Returns whether jobs are marked, profiled, supervised or guarded.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        // Changes only while no job of the task can run; starting and joining the threads orders
        // that.
        self.0.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn set(&self, task: u16, marker: RawFd) {
        self.0.fetch_or(u64::from(task) | ON | (marker as u32 as u64) << 32, Ordering::Relaxed);
    }

    /// Stops marking jobs.
    pub(crate) fn clear(&self) {
        self.0.fetch_and(PROFILED | SUPERVISED | GUARDED, Ordering::Relaxed);
    }

    /// Sets whether jobs are profiled, while none can run.
    pub(crate) fn set_profiled(&self, profiled: bool) {
        match profiled {
            true => self.0.fetch_or(PROFILED, Ordering::Relaxed),
            false => self.0.fetch_and(!PROFILED, Ordering::Relaxed),
        };
    }

    /// Sets whether jobs are reported to a supervisor, while none can run.
    pub(crate) fn set_supervised(&self, supervised: bool) {
        match supervised {
            true => self.0.fetch_or(SUPERVISED, Ordering::Relaxed),
            false => self.0.fetch_and(!SUPERVISED, Ordering::Relaxed),
        };
    }

    /// Sets whether the guard watches jobs, while none can run.
    #[cfg_attr(not(feature = "guard"), allow(dead_code, reason = "there is no guard"))]
    pub(crate) fn set_guarded(&self, guarded: bool) {
        match guarded {
            true => self.0.fetch_or(GUARDED, Ordering::Relaxed),
            false => self.0.fetch_and(!GUARDED, Ordering::Relaxed),
        };
    }

    /// Marks the start of a job that was released at `release`, in ns.
    pub(crate) fn start(&self, release: u64) {
        self.write(|task| trace_marker::start(task, release));
    }

    /// Marks the end of a job.
    pub(crate) fn end(&self) {
        self.write(trace_marker::end);
    }

    fn write(&self, bytes: impl FnOnce(u16) -> trace_marker::Bytes) {
        let on = self.0.load(Ordering::Relaxed);
        if on & ON != 0 {
            // SAFETY: `Marks` keeps the descriptor open until it has cleared this, which it does
            // when no job can run.
            let marker = unsafe { BorrowedFd::borrow_raw((on >> 32) as RawFd) };
            // A failure is ignored: the trace may not be recording, or be full.
            let _ = rustix::io::write(marker, &bytes(on as u16));
        }
    }
}

/// Returns the mount point of tracefs, from the usual ones.
pub(crate) fn find() -> Result<PathBuf, String> {
    let directories = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let files = directories.map(|place| Path::new(place).join("trace_marker_raw"));
    // One without permission may be the right one; opening the file reports the error.
    let there = |path: &&PathBuf| match fs::metadata(path) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::PermissionDenied,
    };
    files.iter().find(there).cloned().ok_or_else(|| {
        "there is no /sys/kernel/tracing/trace_marker_raw; mount tracefs (mount -t tracefs nodev /sys/kernel/tracing), \
         or set PUNCTUAL_TRACE to the path of a trace_marker_raw"
            .to_owned()
    })
}

pub(crate) fn open(path: PathBuf) -> Result<(OwnedFd, PathBuf), String> {
    let opened = fs::File::options().write(true).custom_flags(libc::O_CLOEXEC | libc::O_NOCTTY).open(&path);
    match opened {
        Ok(file) => Ok((file.into(), path)),
        Err(error) => Err(format!("cannot write to {}: {}", path.display(), explain(&error))),
    }
}

/// Returns the reason why a write of a mark failed, with the remedy.
pub(crate) fn refused(path: &Path, error: Errno) -> String {
    match error {
        Errno::BADF => format!(
            "{} accepts no marks while {} is 0; write 1 to it, and the app marks its jobs from then on",
            path.display(),
            path.with_file_name("tracing_on").display()
        ),
        error => format!("cannot write to {}: {error}", path.display()),
    }
}

fn explain(error: &Error) -> String {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            format!(
                "{error}; run as root, or give one of your groups access (mount -o \
                 remount,gid=…,mode=0770 on tracefs)"
            )
        }
        Some(libc::ENOENT) => format!("{error}; start the recording first, and the app while it runs"),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn writes_task_and_release_only_if_enabled() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mark = Mark::off();
        mark.start(5);
        mark.end();
        assert!(!mark.is_on() && fs::read(&file).unwrap().is_empty());
        mark.set(0, file.as_raw_fd());
        assert!(mark.is_on());
        mark.start(5);
        mark.end();
        mark.clear();
        mark.end();
        let written = fs::read(&file).unwrap();
        assert_eq!(written, [&trace_marker::start(0, 5)[..], &trace_marker::end(0)].concat());
    }

    /// As the kernel does while the buffer is off.
    #[test]
    fn reports_buffer_that_is_off_with_remedy() {
        let file = fs::File::open("/dev/null").unwrap();
        let error = rustix::io::write(&file, b"mark").unwrap_err();
        let why = refused(Path::new("/sys/kernel/tracing/trace_marker_raw"), error);
        assert!(why.contains("while /sys/kernel/tracing/tracing_on is 0; write 1 to it"), "{why}");
    }

    #[test]
    fn reports_unopenable_device_with_remedy() {
        let missing = open("/proc/self/no such file".into()).unwrap_err();
        assert!(missing.contains("/proc/self/no such file") && missing.contains("recording"), "{missing}");
        let denied = explain(&Error::from_raw_os_error(libc::EACCES));
        assert!(denied.contains("root"), "{denied}");
    }
}
