//! The process at the other end of a socket, as reported by the kernel.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// A process, in the namespaces of this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    /// 0 if the process is in another PID namespace.
    pub(crate) process: u32,
    /// Its effective user when it connected or started to listen.
    pub(crate) user: u32,
}

impl Peer {
    pub(crate) fn of(stream: &UnixStream) -> io::Result<Self> {
        // Without `rustix`, whose type does not permit process 0.
        let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        let descriptor = stream.as_raw_fd();
        // SAFETY: the kernel writes at most `length` bytes to `peer`, for which every bit pattern
        // is valid.
        let result = unsafe {
            let (value, length) = ((&raw mut peer).cast(), &raw mut length);
            libc::getsockopt(descriptor, libc::SOL_SOCKET, libc::SO_PEERCRED, value, length)
        };
        match result {
            0 => Ok(Self { process: peer.pid.max(0).unsigned_abs(), user: peer.uid }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Returns `true` if it runs as the user of this process.
    pub(crate) fn is_own(self) -> bool {
        let own = rustix::process::geteuid().as_raw();
        self.user == own && !is_ambiguous(own)
    }
}

/// Returns `true` if the ID stands for several users: the kernel shows every user without an ID in
/// this user namespace as `overflowuid`.
fn is_ambiguous(user: u32) -> bool {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    user == read("/proc/sys/kernel/overflowuid").trim().parse().unwrap_or(OVERFLOW)
        && !maps_all(&read("/proc/self/uid_map"))
}

/// The kernel's default of `overflowuid`.
const OVERFLOW: u32 = 65534;

/// Returns `true` for the map of the initial user namespace, in which every user has an ID.
fn maps_all(map: &str) -> bool {
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use punctual_process::child::{BoundedCommand, TEST_LIMIT};

    use super::*;

    #[test]
    fn rejects_overflow_user_of_a_namespace() {
        assert!(maps_all("         0          0 4294967295\n"));
        for map in ["", "         0       1000          1\n", "0 0 65534\n65534 100000 1\n"] {
            assert!(!maps_all(map), "{map}");
        }
    }

    /// Set in a process that runs one test again.
    const CHILD: &str = "PUNCTUAL_TEST_CHILD";

    pub(crate) fn is_child() -> bool {
        std::env::var_os(CHILD).is_some()
    }

    /// Returns the command that runs a test again, in a process for which [`is_child`] is true.
    pub(crate) fn again(test: &str) -> Command {
        let mut child = Command::new("/proc/self/exe");
        child.args(["--exact", test]).env(CHILD, "");
        child
    }

    /// Runs a test again in a user namespace in which no user has an ID.
    fn run_without_ids(test: &str) {
        let mut child = again(test);
        // SAFETY: the closure does not allocate, and only makes a system call, which is
        // async-signal-safe.
        unsafe {
            child.pre_exec(|| match libc::unshare(libc::CLONE_NEWUSER) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            });
        }
        let output = match child.output_within(TEST_LIMIT) {
            // The kernel or a container may not permit it.
            Err(error) if error.kind() != io::ErrorKind::TimedOut => {
                let need = test_skip::Need::System("user namespaces");
                return test_skip::skip(need, format_args!("{test}: {error}"));
            }
            output => output.unwrap(),
        };
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }

    /// Calls `f` as another user, who owns the sockets that it creates: as user 65534 if this
    /// process is root. Otherwise runs `test` again in a user namespace in which no user has an ID,
    /// so every user is another one, and returns `None`.
    pub(crate) fn as_another_user<T: Send + 'static>(
        test: &str,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        if is_child() {
            return Some(f());
        }
        if !rustix::process::geteuid().is_root() {
            run_without_ids(test);
            return None;
        }
        // The owner of a socket is the user of the thread that created it.
        let theirs = std::thread::spawn(|| {
            let user = rustix::process::Uid::from_raw(OVERFLOW);
            rustix::thread::set_thread_res_uid(user, user, user).expect("root may become any user");
            f()
        });
        Some(theirs.join().unwrap())
    }

    #[test]
    fn rejects_users_without_an_id() {
        if !is_child() {
            return run_without_ids("peer::tests::rejects_users_without_an_id");
        }
        let (one, _other) = UnixStream::pair().unwrap();
        let peer = Peer::of(&one).unwrap();
        assert_eq!(peer.user, rustix::process::geteuid().as_raw());
        assert!(!peer.is_own(), "others have the same ID");
    }

    #[test]
    fn is_this_process() {
        let (one, _other) = UnixStream::pair().unwrap();
        let peer = Peer::of(&one).unwrap();
        assert_eq!(peer.process, std::process::id());
        assert!(peer.is_own());
        assert!(!Peer { user: peer.user.wrapping_add(1), ..peer }.is_own());
    }
}
