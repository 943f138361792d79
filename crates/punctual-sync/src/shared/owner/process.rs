//! Identification of processes by the kernel.
//!
//! Real-time safety: [`identity`] asks the kernel once in the lifetime of a process, later calls
//! are two loads. [`has_died`] makes up to ten system calls. Nothing allocates.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use rustix::process::{Pid, getpid, test_kill_process};

use super::{ANONYMOUS, NO_OWNER, Owner};

/// The identity of this process, in a page that the kernel clears in the child of a fork.
struct Known {
    /// 0 if the identity is not known yet. Written last.
    owner: AtomicU64,
    namespace: AtomicU32,
}

const PAGE: usize = 4096;

/// Returns the namespace of the calling process's PID; 0 if it cannot be identified.
pub(super) fn namespace() -> u32 {
    let (owner, namespace) = identity();
    if owner == ANONYMOUS { 0 } else { namespace }
}

/// Returns the calling process, and the namespace of its PID.
#[inline]
pub(super) fn identity() -> (Owner, u32) {
    static KNOWN: AtomicPtr<Known> = AtomicPtr::new(ptr::null_mut());
    let known = KNOWN.load(Ordering::Acquire);
    // SAFETY: a stored page is never unmapped, and atomics are valid for every content.
    match unsafe { known.as_ref() } {
        Some(known) => {
            // Acquire: pairs with the release in `learn`.
            let owner = Owner(known.owner.load(Ordering::Acquire));
            if owner == NO_OWNER { learn(known) } else { (owner, known.namespace.load(Ordering::Relaxed)) }
        }
        None => match page() {
            Ok(new) => {
                // Release: the page is initialized before it is found. Another thread may have been
                // first; then its page is used, and this one is not.
                let _ = KNOWN.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
                // SAFETY: as above.
                learn(unsafe { &*KNOWN.load(Ordering::Acquire) })
            }
            Err(_) => ask().unwrap_or((ANONYMOUS, 0)),
        },
    }
}

/// Maps a page of zeros, which is cleared after every fork.
fn page() -> Result<*mut Known, Errno> {
    let (rights, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping, which replaces none; its content is zeroed.
    unsafe {
        let page = rustix::mm::mmap_anonymous(ptr::null_mut(), PAGE, rights, private)?;
        rustix::mm::madvise(page, PAGE, Advice::LinuxWipeOnFork)?;
        Ok(page.cast())
    }
}

#[cold]
fn learn(known: &Known) -> (Owner, u32) {
    let (owner, namespace) = ask().unwrap_or((ANONYMOUS, 0));
    known.namespace.store(namespace, Ordering::Relaxed);
    // Release: publishes the namespace. Threads that learn it concurrently store the same values.
    known.owner.store(owner.0, Ordering::Release);
    (owner, namespace)
}

fn ask() -> Option<(Owner, u32)> {
    let pid = getpid().as_raw_pid() as u32;
    let status = status(c"/proc/self/stat")?;
    let namespace = rustix::fs::stat(c"/proc/self/ns/pid").ok()?.st_ino;
    has_initial_clock().then_some((status.owner(pid)?, u32::try_from(namespace).ok()?))
}

/// `PROC_TIME_INIT_INO`: the initial time namespace.
const INITIAL_TIME_NAMESPACE: u64 = 0xefff_fffa;

/// Returns `true` if the calling process is in the initial time namespace. In any other, the kernel
/// shows it other start times, so it would take living processes for others.
fn has_initial_clock() -> bool {
    match rustix::fs::stat(c"/proc/self/ns/time") {
        Ok(stat) => stat.st_ino == INITIAL_TIME_NAMESPACE,
        // The kernel has no time namespaces.
        Err(error) => error == Errno::NOENT,
    }
}

/// Returns `true` if the process with this PID is no longer `owner`, or has ended. When in doubt,
/// returns `false`.
pub(super) fn has_died(owner: Owner) -> bool {
    // This process may have changed its time namespace or its `/proc` since it was identified.
    if ask() != Some(identity()) {
        return false;
    }
    let Some(pid) = i32::try_from(owner.pid()).ok().and_then(Pid::from_raw) else { return false };
    if test_kill_process(pid) == Err(Errno::SRCH) {
        return true;
    }
    // An invisible process belongs to another user, and is alive.
    let Some(status) = status_of(owner.pid()) else { return false };
    Owner::new(owner.pid(), status.start) != owner || status.has_ended()
}

#[derive(Debug, PartialEq, Eq)]
struct Status {
    pid: u32,
    is_zombie: bool,
    threads: u32,
    /// The start time, in clock ticks since boot.
    start: u64,
}

impl Status {
    /// Returns the process `pid`, if this status belongs to it. Otherwise `/proc` shows another
    /// namespace.
    fn owner(&self, pid: u32) -> Option<Owner> {
        (self.pid == pid).then(|| Owner::new(pid, self.start))
    }

    /// A zombie whose only thread is the one that has ended has no thread left to run.
    fn has_ended(&self) -> bool {
        self.is_zombie && self.threads <= 1
    }
}

fn status_of(pid: u32) -> Option<Status> {
    status(core::ffi::CStr::from_bytes_until_nul(&path_of(pid)).ok()?)
}

/// Returns the path of a process's status file, terminated by a zero.
fn path_of(pid: u32) -> [u8; 22] {
    let mut path = *b"/proc/0000000000/stat\0";
    let (mut rest, digits) = (pid, &mut path[6..16]);
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    // The kernel does not accept leading zeros.
    let zeros = path[6..15].iter().take_while(|&&digit| digit == b'0').count();
    path.copy_within(6 + zeros.., 6);
    path
}

fn status(path: &core::ffi::CStr) -> Option<Status> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut text = [0; 512];
    let length = rustix::io::retry_on_intr(|| rustix::io::read(&file, &mut text)).ok()?;
    parse(&text[..length])
}

/// Parses proc_pid_stat(5).
fn parse(text: &[u8]) -> Option<Status> {
    let number = |field: &[u8]| core::str::from_utf8(field).ok()?.parse::<u64>().ok();
    let pid = number(text.split(|&byte| byte == b' ').next()?)?;
    // The name, in parentheses, may contain anything, also blanks and parentheses.
    let name_end = text.iter().rposition(|&byte| byte == b')')?;
    let mut fields = text.get(name_end + 2..)?.split(|&byte| byte == b' ');
    let state = fields.next()?;
    // The state is field 3.
    let threads = number(fields.nth(20 - 4)?)?;
    let start = number(fields.nth(22 - 21)?)?;
    Some(Status {
        pid: u32::try_from(pid).ok()?,
        is_zombie: matches!(state, b"Z" | b"X" | b"x"),
        threads: u32::try_from(threads).ok()?,
        start,
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const OTHERS: &[u8] =
        b"17 (a) b (c)) S 1 17 17 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 3 0 4711 0 0 18446744073709551615 1";

    #[test]
    fn accepts_blanks_and_parentheses_in_names() {
        let expected = Status { pid: 17, is_zombie: false, threads: 3, start: 4711 };
        assert_eq!(parse(OTHERS), Some(expected));
        assert_eq!(parse(b"17 (a"), None);
    }

    #[test]
    fn recognizes_zombies_by_state() {
        let zombie = parse(b"17 (a) Z 1 17 17 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0").unwrap();
        assert!(zombie.has_ended() && !parse(OTHERS).unwrap().has_ended());
        assert!(!Status { threads: 2, ..zombie }.has_ended(), "another thread continues");
    }

    #[test]
    fn ignores_process_ids_of_other_namespaces() {
        let status = parse(OTHERS).unwrap();
        assert_eq!((status.owner(17), status.owner(18)), (Some(Owner::new(17, 4711)), None));
    }

    #[test]
    fn paths_have_no_leading_zeros() {
        for pid in [0, 7, 10, 4_711, 1_000_000, u32::MAX] {
            let path = path_of(pid);
            let path = core::ffi::CStr::from_bytes_until_nul(&path).unwrap();
            assert_eq!(path.to_str().unwrap(), format!("/proc/{pid}/stat"));
        }
    }

    #[test]
    fn identifies_own_process() {
        let (me, namespace) = identity();
        assert_ne!((me, namespace), (ANONYMOUS, 0), "this test needs /proc");
        assert_eq!(me.pid(), std::process::id());
        assert!(!has_died(me));
        assert_eq!(identity(), (me, namespace));
    }

    #[test]
    fn other_start_time_means_other_process() {
        let (me, _) = identity();
        assert!(has_died(Owner(me.0 - 1)), "this process has reused its PID");
    }

    #[test]
    fn zombie_child_is_dead() {
        use punctual_process::child::BoundedChild;

        let mut child = Command::new("true").spawn().unwrap();
        // Its start time is readable while it is a zombie, but not once it has been reaped.
        let start = status_of(child.id()).unwrap().start;
        let owner = Owner::new(child.id(), start);
        while !has_died(owner) {
            std::thread::yield_now();
        }
        assert!(status_of(child.id()).is_some_and(|status| status.is_zombie));
        child.end_at_once().unwrap();
        assert!(has_died(owner));
    }

    /// In a child of this test: its parent, and the directory that becomes the root, if any.
    const PARENT: &str = "PUNCTUAL_TEST_PARENT";
    const NEW_ROOT: &str = "PUNCTUAL_TEST_NEW_ROOT";

    #[test]
    #[cfg_attr(miri, ignore = "starts processes")]
    fn does_not_judge_by_other_clock_or_other_proc() {
        use std::os::unix::fs::chroot;
        use std::os::unix::process::CommandExt;

        use punctual_process::child::{BoundedCommand, TEST_LIMIT};

        if let Ok(parent) = std::env::var(PARENT) {
            let (me, _) = identity();
            match std::env::var_os(NEW_ROOT) {
                None => assert_eq!(me, ANONYMOUS),
                Some(root) => chroot(root).unwrap(),
            }
            assert!(!has_died(Owner(parent.parse().unwrap())), "it waits for this process");
            return;
        }
        if !rustix::process::geteuid().is_root() {
            return test_skip::skip(test_skip::Need::Root, "time namespaces and chroot");
        }
        let test = "shared::owner::process::tests::does_not_judge_by_other_clock_or_other_proc";
        // A shell starts the test: only children enter a new time namespace, on older kernels.
        let again = || {
            let mut command = Command::new("sh");
            command.args(["-c", "\"$0\" --exact \"$1\" & wait $!"]);
            command.arg(std::env::current_exe().unwrap()).arg(test);
            command.env(PARENT, identity().0.0.to_string());
            command
        };
        let check = |output: std::process::Output| {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        };
        // Its `/proc` has another process with the number of this one.
        let root = std::env::temp_dir().join(format!("punctual-owner-{}", std::process::id()));
        let proc = root.join(format!("proc/{}", std::process::id()));
        std::fs::create_dir_all(&proc).unwrap();
        let other = String::from_utf8_lossy(OTHERS).replacen("17", &std::process::id().to_string(), 1);
        std::fs::write(proc.join("stat"), other).unwrap();
        let output = again().env(NEW_ROOT, &root).output_within(TEST_LIMIT).unwrap();
        std::fs::remove_dir_all(&root).unwrap();
        check(output);
        let leave = || {
            // SAFETY: the call takes an integer.
            if unsafe { libc::unshare(libc::CLONE_NEWTIME) } != 0 {
                return Err(std::io::Error::last_os_error());
            }
            let file = rustix::fs::open(c"/proc/self/timens_offsets", OFlags::WRONLY, Mode::empty())?;
            rustix::io::write(&file, b"boottime 1000 0\n")?;
            Ok(())
        };
        let mut command = again();
        // SAFETY: between fork and exec the closure makes system calls only.
        match unsafe { command.pre_exec(leave) }.output_within(TEST_LIMIT) {
            Ok(output) => check(output),
            Err(error) => test_skip::skip(test_skip::Need::System("time namespaces"), error),
        }
    }
}
