//! Locks the process's memory, so that no job waits for a page.
//!
//! The state of the lock and the effect of a limit are determined by trying, not by reading
//! `/proc`: it may not be mounted, and does not show the effect of a capability in a user
//! namespace.

use std::fs;
use std::io::Error;
use std::sync::{Mutex, PoisonError};

use punctual_process::limits::{Resource, soft_limit};

use super::mapping::Mapping;
use super::valgrind;
use crate::port::Count;

/// The number of runs that keep memory locked. The lock itself belongs to the process.
static USERS: Mutex<Users> = Mutex::new(Users { count: 0, locked_before: false });

struct Users {
    count: usize,
    /// True if memory was locked before the first of them; then it is not ours to unlock.
    locked_before: bool,
}

/// Keeps memory locked; dropping the last one unlocks it, if it was locked here.
#[derive(Debug)]
pub(crate) struct Locked {
    user: bool,
    /// The missing setting, if any.
    pub(crate) missing: Option<String>,
}

impl Locked {
    /// Locks all present and future memory of the process.
    pub(crate) fn all() -> Self {
        // With a limit in force, a lock that succeeds now would make later allocations fail
        // instead.
        if let Some(limit) = limit() {
            return Self {
                user: false,
                missing: Some(format!(
                    "memory is not locked: RLIMIT_MEMLOCK is {} KiB; run as root, grant CAP_IPC_LOCK, or raise the \
                     limit of this shell by `sudo prlimit --pid $$ --memlock=unlimited`",
                    Count(limit / 1024)
                )),
            };
        }
        let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
        if users.count == 0 {
            users.locked_before = is_locked_now() || status_kib("VmLck:").is_some_and(|locked| locked > 0);
            if is_locked() {
                return Self { user: false, missing: None };
            }
        }
        // SAFETY: the call takes no pointers.
        let refused = match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } {
            0 if is_locked() => None,
            0 => Some("mlockall succeeded and locked nothing".to_owned()),
            _ => Some(format!("mlockall: {}", Error::last_os_error())),
        };
        match refused {
            None => {
                users.count += 1;
                Self { user: true, missing: None }
            }
            Some(refused) => Self {
                user: false,
                missing: Some(format!(
                    "memory is not locked: {refused}; RLIMIT_MEMLOCK is not the cause; see whether a seccomp filter or a \
                     security module forbids it"
                )),
            },
        }
    }

    /// Describes whether memory is locked, and the amount of memory if the kernel reports it.
    pub(crate) fn describe() -> String {
        // Not the amount that is locked, because it includes reserved address space.
        match (is_locked(), status_kib("VmRSS:")) {
            (false, _) => "not locked".into(),
            (true, Some(resident)) => format!("locked, {:.1} MiB resident", resident as f64 / 1024.0),
            (true, None) => "locked".into(),
        }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        if !self.user {
            return;
        }
        let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
        users.count -= 1;
        if users.count > 0 {
            return;
        }
        // SAFETY: the calls take no pointers.
        unsafe {
            match users.locked_before {
                // Only future mappings are unlocked.
                true => libc::mlockall(libc::MCL_CURRENT),
                false => libc::munlockall(),
            }
        };
    }
}

/// Returns whether the mapping may be locked. Makes none of it resident.
fn may_be_locked(mapping: &Mapping) -> bool {
    let start = mapping.start().cast();
    // SAFETY: the range belongs to this mapping. Locking affects nothing else, and ends with the
    // mapping.
    unsafe { libc::mlock2(start, mapping.length(), libc::MLOCK_ONFAULT) == 0 }
}

/// Returns the limit on locked memory in bytes, if it restricts this process.
fn limit() -> Option<u64> {
    let limit = soft_limit(Resource::LockedMemory).ok()??;
    let more = usize::try_from(limit).ok()?.checked_add(PAGE)?;
    // A limit beyond the address space restricts nothing.
    let mapping = Mapping::reserve(more).ok()?;
    (!may_be_locked(&mapping)).then_some(limit)
}

const PAGE: usize = 4096;

/// Returns whether current and future memory is locked.
fn is_locked() -> bool {
    is_locked_now() && Mapping::reserve(PAGE).is_ok_and(|new| is_locked_at(new.start().cast()))
}

/// Returns whether current memory is locked, using the calling thread's stack.
fn is_locked_now() -> bool {
    let here = 0_u8;
    is_locked_at(std::ptr::from_ref(&here).cast())
}

/// Returns whether the page of `address` is locked.
fn is_locked_at(address: *const libc::c_void) -> bool {
    // SAFETY: the call takes no pointers.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(PAGE);
    let start = address.map_addr(|address| address & !(page - 1)).cast_mut();
    // A page of the stack begins below the stack pointer, which valgrind reports.
    valgrind::without_reports(|| {
        // SAFETY: nothing is written or discarded: for anonymous memory the call only checks that
        // it is mapped and, with this flag, that it is not locked.
        let refused = unsafe { libc::msync(start, page, libc::MS_INVALIDATE) } != 0;
        refused && Error::last_os_error().raw_os_error() == Some(libc::EBUSY)
    })
}

/// Returns a number of KiB from this process's status, if `/proc` is mounted.
fn status_kib(name: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
