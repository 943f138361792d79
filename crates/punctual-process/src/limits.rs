//! Resource limits of processes.
//!
//! A sandbox may refuse `prlimit64`, so each call returns an error instead of panicking.

use std::io;

/// Resource with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Address space, in bytes (`RLIMIT_AS`). Beyond it, allocations fail.
    AddressSpace,
    /// Size of a core dump, in bytes (`RLIMIT_CORE`); 0 prevents core dumps.
    CoreFile,
    /// CPU time of the process since its start, in s (`RLIMIT_CPU`). Beyond it, SIGXCPU or SIGKILL
    /// ends the process.
    CpuTime,
    /// Private writable memory, mapped regions included, in bytes (`RLIMIT_DATA`).
    Data,
    /// Size of a file, in bytes (`RLIMIT_FSIZE`).
    FileSize,
    /// Locked memory, in bytes (`RLIMIT_MEMLOCK`).
    LockedMemory,
    /// Open files (`RLIMIT_NOFILE`).
    OpenFiles,
    /// CPU time of a real-time thread between two sleeps, in µs (`RLIMIT_RTTIME`).
    RealTime,
}

#[cfg(target_env = "gnu")]
type Number = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Number = libc::c_int;

impl Resource {
    const fn number(self) -> Number {
        match self {
            Self::AddressSpace => libc::RLIMIT_AS,
            Self::CoreFile => libc::RLIMIT_CORE,
            Self::CpuTime => libc::RLIMIT_CPU,
            Self::Data => libc::RLIMIT_DATA,
            Self::FileSize => libc::RLIMIT_FSIZE,
            Self::LockedMemory => libc::RLIMIT_MEMLOCK,
            Self::OpenFiles => libc::RLIMIT_NOFILE,
            Self::RealTime => libc::RLIMIT_RTTIME,
        }
    }
}

/// Returns the soft limit of `resource`, or `None` if it is unlimited.
///
/// # Errors
/// The kernel refuses the system call.
pub fn soft_limit(resource: Resource) -> io::Result<Option<u64>> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writes of an `rlimit`.
    match unsafe { libc::getrlimit(resource.number(), &raw mut limit) } {
        0 if limit.rlim_cur == libc::RLIM_INFINITY => Ok(None),
        0 => Ok(Some(limit.rlim_cur)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Lowers both limits of a process to `value`, or to its present hard limit if that is lower.
///
/// # Errors
/// The process does not exist or belongs to another user, or the kernel refuses the system call.
pub fn lower_limit_of(process: u32, resource: Resource, value: u64) -> io::Result<()> {
    let process = process.cast_signed();
    let check = |result| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writes of an `rlimit`.
    check(unsafe { libc::prlimit(process, resource.number(), std::ptr::null(), &raw mut limit) })?;
    let value = limit.rlim_max.min(value);
    limit = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: the kernel reads `limit`.
    check(unsafe { libc::prlimit(process, resource.number(), &raw const limit, std::ptr::null_mut()) })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::time::Duration;

    use super::*;
    use crate::child::{BoundedChild, BoundedCommand};

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

    #[test]
    fn lowers_limits_of_other_process_and_raises_none() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let shown = |name: &str| {
            let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
            let line = limits.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
            line[name.len()..].split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>()
        };
        for (resource, name, value) in [
            (Resource::AddressSpace, "Max address space", 1 << 30),
            (Resource::CoreFile, "Max core file size", 0),
            (Resource::CpuTime, "Max cpu time", 7),
            (Resource::Data, "Max data size", 1 << 30),
            (Resource::OpenFiles, "Max open files", 16),
        ] {
            lower_limit_of(child.id(), resource, value).unwrap();
            lower_limit_of(child.id(), resource, value + 1).unwrap();
            assert_eq!(shown(name), [value.to_string(), value.to_string()], "{name}");
        }
        child.end_at_once().unwrap();
        assert!(lower_limit_of(child.id(), Resource::OpenFiles, 8).is_err());
    }
}
