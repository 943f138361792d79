//! Locking the process's memory, so that no job waits for a page.

use std::fs;
use std::sync::{Mutex, PoisonError};

/// How many runs keep memory locked. The lock is the process's, not theirs.
static USERS: Mutex<usize> = Mutex::new(0);

/// Keeps memory locked; the last one gives it free again when dropped, if it was locked here.
#[derive(Debug)]
pub(crate) struct Locked {
    user: bool,
    /// What is missing, if anything.
    pub(crate) missing: Option<String>,
}

impl Locked {
    /// Locks all present and future memory of the process.
    pub(crate) fn all() -> Self {
        // With a limit in force, a lock that succeeds now would make later allocations fail instead.
        if let Some(limit) = limit() {
            return Self {
                user: false,
                missing: Some(format!(
                    "memory is not locked: RLIMIT_MEMLOCK is {} KiB; grant CAP_IPC_LOCK or raise it (`ulimit \
                     -l unlimited`)",
                    limit / 1024
                )),
            };
        }
        let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
        if *users == 0 && locked_kib() > 0 {
            // Somebody else did it and is not to have it undone.
            return Self { user: false, missing: None };
        }
        // SAFETY: the call takes no pointers.
        match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } {
            0 => {
                *users += 1;
                Self { user: true, missing: None }
            }
            _ => Self {
                user: false,
                missing: Some(format!("memory is not locked: mlockall: {}", std::io::Error::last_os_error())),
            },
        }
    }

    /// How much is locked now, as the kernel tells.
    pub(crate) fn describe() -> String {
        match locked_kib() {
            0 => "not locked".into(),
            // Not how much is locked: that counts address space which is only reserved.
            _ => format!("locked, {:.1} MiB resident", resident_kib() as f64 / 1024.0),
        }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        if !self.user {
            return;
        }
        let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
        *users -= 1;
        if *users == 0 {
            // SAFETY: the call takes no pointers.
            unsafe { libc::munlockall() };
        }
    }
}

/// The limit on locked memory in bytes, if one binds this process.
fn limit() -> Option<u64> {
    const CAP_IPC_LOCK: u64 = 1 << 14;
    let effective = status_field("CapEff:").and_then(|caps| u64::from_str_radix(&caps, 16).ok());
    if effective.is_some_and(|caps| caps & CAP_IPC_LOCK != 0) {
        return None;
    }
    rustix::process::getrlimit(rustix::process::Resource::Memlock).current
}

fn locked_kib() -> u64 {
    status_field("VmLck:").and_then(|kib| kib.parse().ok()).unwrap_or(0)
}

fn resident_kib() -> u64 {
    status_field("VmRSS:").and_then(|kib| kib.parse().ok()).unwrap_or(0)
}

/// The first word after `name` in this process's status.
fn status_field(name: &str) -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next().map(str::to_owned)
}
