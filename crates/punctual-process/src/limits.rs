//! Resource limits of the process.
//!
//! A sandbox may refuse `prlimit64`, so reading a limit returns an error instead of panicking.

use std::io;

/// Resource with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Size of a file, in bytes (`RLIMIT_FSIZE`).
    FileSize,
    /// Locked memory, in bytes (`RLIMIT_MEMLOCK`).
    LockedMemory,
    /// CPU time of a real-time thread between two sleeps, in µs (`RLIMIT_RTTIME`).
    RealTime,
}

/// Returns the soft limit of `resource`, or `None` if it is unlimited.
///
/// # Errors
/// The kernel refuses the system call.
pub fn soft_limit(resource: Resource) -> io::Result<Option<u64>> {
    let resource = match resource {
        Resource::FileSize => libc::RLIMIT_FSIZE,
        Resource::LockedMemory => libc::RLIMIT_MEMLOCK,
        Resource::RealTime => libc::RLIMIT_RTTIME,
    };
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writes of an `rlimit`.
    match unsafe { libc::getrlimit(resource, &raw mut limit) } {
        0 if limit.rlim_cur == libc::RLIM_INFINITY => Ok(None),
        0 => Ok(Some(limit.rlim_cur)),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::time::Duration;

    use super::*;
    use crate::child::BoundedCommand;

    /// Runs this test again, in a process with a file-size limit of 4096 bytes.
    const LIMITED: &str = "PUNCTUAL_TEST_LIMITED";

    #[test]
    fn reads_finite_and_infinite_limits() {
        if std::env::var_os(LIMITED).is_some() {
            assert_eq!(soft_limit(Resource::FileSize).unwrap(), Some(4096));
            return;
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "limits::tests::reads_finite_and_infinite_limits"]).env(LIMITED, "1");
        let limit = libc::rlimit { rlim_cur: 4096, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: the kernel reads `limit`.
        let set = move || match unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        };
        // SAFETY: between fork and exec the closure makes one system call.
        unsafe { command.pre_exec(set) };
        assert!(command.output_within(Duration::from_secs(60)).unwrap().status.success());
    }
}
