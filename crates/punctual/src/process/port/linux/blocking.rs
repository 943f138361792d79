//! Classification of system calls that can block a thread for an unbounded time.

use std::mem::MaybeUninit;

use super::dispatch::Call;

/// Returns the call's name if it can block. Async-signal-safe. Drivers may behave in any way and
/// are not classified.
pub(crate) fn name(call: &Call) -> Option<&'static str> {
    let at = call.arguments;
    /// Names the call if it is listed and its condition holds. The name of a call is that of its
    /// number's constant.
    macro_rules! calls {
        ($($number:ident if $blocks:expr),* $(,)?) => {
            match call.number {
                $(libc::$number => $blocks.then(|| stringify!($number).trim_start_matches("SYS_")),)*
                _ => None,
            }
        };
    }
    let always = true;
    let reads = |flags: usize| reads(at[0] as i32, flags as i32);
    let writes = |flags: usize| writes(at[0] as i32, flags as i32);
    let connects = || !is_nonblocking(at[0] as i32);
    let name = calls! {
        // Time and events.
        SYS_nanosleep if always, SYS_clock_nanosleep if always, SYS_sched_yield if always,
        SYS_rt_sigsuspend if always, SYS_rt_sigtimedwait if always,
        SYS_wait4 if always, SYS_waitid if always,
        SYS_ppoll if has_time(at[2]), SYS_pselect6 if has_time(at[4]),
        SYS_epoll_pwait if at[3] as i32 != 0, SYS_epoll_pwait2 if has_time(at[3]),
        // Locks and messages.
        SYS_futex if waits(at[1] as i32), SYS_futex_waitv if always, SYS_flock if always,
        SYS_fcntl if matches!(at[1] as i32, libc::F_SETLKW | libc::F_OFD_SETLKW),
        SYS_msgrcv if always, SYS_msgsnd if always, SYS_semop if always, SYS_semtimedop if always,
        SYS_mq_timedreceive if always, SYS_mq_timedsend if always,
        // Reading and writing.
        SYS_read if reads(0), SYS_readv if reads(0), SYS_pread64 if reads(0), SYS_preadv if reads(0),
        SYS_preadv2 if reads(0), SYS_recvfrom if reads(at[3]), SYS_recvmsg if reads(at[2]),
        SYS_recvmmsg if reads(at[3]),
        SYS_write if writes(0), SYS_writev if writes(0), SYS_pwrite64 if writes(0), SYS_pwritev if writes(0),
        SYS_pwritev2 if writes(0), SYS_sendto if writes(at[3]), SYS_sendmsg if writes(at[2]),
        SYS_sendmmsg if writes(at[3]), SYS_sendfile if writes(0),
        SYS_splice if always, SYS_tee if always, SYS_vmsplice if always, SYS_copy_file_range if always,
        SYS_connect if connects(), SYS_accept if connects(), SYS_accept4 if connects(),
        SYS_fsync if always, SYS_fdatasync if always, SYS_sync if always, SYS_syncfs if always,
        SYS_sync_file_range if always, SYS_ftruncate if always, SYS_fallocate if always,
        // Paths.
        SYS_openat if always, SYS_openat2 if always, SYS_newfstatat if has_path(at[1]), SYS_statx if has_path(at[1]),
        SYS_faccessat if always, SYS_faccessat2 if always, SYS_readlinkat if always, SYS_mkdirat if always,
        SYS_unlinkat if always, SYS_renameat if always, SYS_renameat2 if always, SYS_linkat if always,
        SYS_symlinkat if always, SYS_truncate if always, SYS_chdir if always, SYS_getdents64 if always,
        SYS_statfs if always,
        // Memory, threads and processes.
        SYS_brk if always, SYS_mmap if always, SYS_munmap if always, SYS_mremap if always,
        SYS_mprotect if always, SYS_madvise if always, SYS_msync if always, SYS_mlock if always,
        SYS_munlock if always, SYS_mlock2 if always, SYS_mlockall if always, SYS_munlockall if always,
        SYS_clone if always, SYS_clone3 if always, SYS_execve if always, SYS_execveat if always,
    };
    // Calls that newer architectures no longer have.
    #[cfg(target_arch = "x86_64")]
    let name = name.or_else(|| {
        calls! {
            SYS_poll if at[2] as i32 != 0, SYS_select if has_time(at[4]), SYS_epoll_wait if at[3] as i32 != 0,
            SYS_pause if always, SYS_fork if always, SYS_vfork if always,
            SYS_open if always, SYS_creat if always, SYS_stat if always, SYS_lstat if always,
            SYS_access if always, SYS_readlink if always, SYS_mkdir if always, SYS_rmdir if always,
            SYS_unlink if always, SYS_rename if always, SYS_link if always, SYS_symlink if always,
            SYS_getdents if always,
        }
    });
    name
}

/// Returns whether the futex operation waits.
fn waits(operation: i32) -> bool {
    /// Newer than the C library's list.
    const FUTEX_LOCK_PI2: i32 = 13;
    matches!(
        operation & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME),
        libc::FUTEX_WAIT
            | libc::FUTEX_WAIT_BITSET
            | libc::FUTEX_WAIT_REQUEUE_PI
            | libc::FUTEX_LOCK_PI
            | FUTEX_LOCK_PI2
    )
}

/// Returns whether the time-out at this address lets a call wait: it is null, or not zero. Seconds
/// and their fraction have the same size.
fn has_time(timeout: usize) -> bool {
    let timeout = std::ptr::with_exposed_provenance::<[i64; 2]>(timeout);
    // SAFETY: null, or an address that the job passes to the kernel for reading, which safe code
    // can only do with a valid one.
    timeout.is_null() || unsafe { timeout.read_unaligned() } != [0, 0]
}

/// Returns whether a call with a descriptor and a path uses the path.
fn has_path(path: usize) -> bool {
    let path = std::ptr::with_exposed_provenance::<u8>(path);
    // SAFETY: as in `has_time`.
    !path.is_null() && unsafe { path.read() } != 0
}

fn is_nonblocking(fd: i32) -> bool {
    // SAFETY: the call takes no pointers.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    // An invalid descriptor fails at once.
    flags < 0 || flags & libc::O_NONBLOCK != 0
}

/// Kinds of files, with respect to blocking.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Regular,
    Terminal,
    /// A pipe or a socket.
    Stream,
    /// A device of a driver.
    Device,
    /// An event, a timer or similar.
    Other,
}

fn kind(fd: i32) -> Kind {
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: `status` is valid for the kernel's write, and all-zero is a valid value.
    let mode = unsafe {
        libc::fstat(fd, status.as_mut_ptr());
        status.assume_init().st_mode
    };
    match mode & libc::S_IFMT {
        libc::S_IFREG | libc::S_IFDIR | libc::S_IFBLK => Kind::Regular,
        libc::S_IFIFO | libc::S_IFSOCK => Kind::Stream,
        // SAFETY: the call takes no pointers.
        libc::S_IFCHR if unsafe { libc::isatty(fd) } == 1 => Kind::Terminal,
        libc::S_IFCHR => Kind::Device,
        _ => Kind::Other,
    }
}

/// Returns whether reading may wait: for a disk, or because there is nothing to read.
fn reads(fd: i32, flags: i32) -> bool {
    match kind(fd) {
        Kind::Regular => true,
        Kind::Device => false,
        _ => flags & libc::MSG_DONTWAIT == 0 && !is_nonblocking(fd) && !is_ready(fd, libc::POLLIN),
    }
}

/// Returns whether writing may wait: for a disk, or for a reader, whose speed is unknown.
fn writes(fd: i32, flags: i32) -> bool {
    if matches!(fd, libc::STDOUT_FILENO | libc::STDERR_FILENO) {
        // Regardless of their current state.
        return true;
    }
    let waits = || flags & libc::MSG_DONTWAIT == 0 && !is_nonblocking(fd);
    match kind(fd) {
        Kind::Regular => true,
        Kind::Device => false,
        Kind::Terminal | Kind::Stream => waits(),
        Kind::Other => waits() && !is_ready(fd, libc::POLLOUT),
    }
}

fn is_ready(fd: i32, events: libc::c_short) -> bool {
    let mut fds = libc::pollfd { fd, events, revents: 0 };
    // SAFETY: the pointer is to one valid `pollfd`, which lives for the call.
    unsafe { libc::poll(&raw mut fds, 1, 0) != 0 }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    fn named(number: i64, arguments: &[usize]) -> Option<&'static str> {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        name(&Call { number, arguments: all, place: 0 })
    }

    #[test]
    fn waits_count_and_wakes_do_not() {
        let futex = |operation: i32| named(libc::SYS_futex, &[0, operation as usize]);
        assert_eq!(futex(libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG), Some("futex"));
        assert_eq!(futex(libc::FUTEX_LOCK_PI), Some("futex"));
        assert_eq!(futex(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG), None);
        assert_eq!(named(libc::SYS_clock_nanosleep, &[]), Some("clock_nanosleep"));
        assert_eq!(named(libc::SYS_getpid, &[]), None);
        assert_eq!(named(libc::SYS_ioctl, &[0, 1]), None);
    }

    #[test]
    fn ignores_observation_without_time() {
        let (none, some) = ([0_i64; 2], [0_i64, 1]);
        let address = |time: &[i64; 2]| std::ptr::from_ref(time).expose_provenance();
        assert_eq!(named(libc::SYS_ppoll, &[0, 0, address(&none)]), None);
        assert_eq!(named(libc::SYS_ppoll, &[0, 0, address(&some)]), Some("ppoll"));
        assert_eq!(named(libc::SYS_ppoll, &[0, 0, 0]), Some("ppoll"));
        let (empty, path) = (c"", c"/");
        let address = |path: &std::ffi::CStr| path.as_ptr().expose_provenance();
        assert_eq!(named(libc::SYS_statx, &[3, address(empty)]), None);
        assert_eq!(named(libc::SYS_statx, &[3, address(path)]), Some("statx"));
    }

    #[test]
    fn reads_without_data_and_blocking_writes_count_as_blocking() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let fd = here.as_raw_fd() as usize;
        assert_eq!(named(libc::SYS_read, &[fd]), Some("read"));
        assert_eq!(named(libc::SYS_recvfrom, &[fd, 0, 0, libc::MSG_DONTWAIT as usize]), None);
        there.write_all(b"!").unwrap();
        assert_eq!(named(libc::SYS_read, &[fd]), None);
        assert_eq!(named(libc::SYS_write, &[fd]), Some("write"));
        here.set_nonblocking(true).unwrap();
        assert_eq!(named(libc::SYS_write, &[fd]), None);
        assert_eq!(named(libc::SYS_write, &[1]), Some("write"));
    }

    #[test]
    fn files_count_devices_and_events_do_not() {
        let fd = |file: &dyn AsRawFd| file.as_raw_fd() as usize;
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let null = File::options().read(true).write(true).open("/dev/null").unwrap();
        let event = eventfd(1, EventfdFlags::empty()).unwrap();
        assert_eq!(named(libc::SYS_pread64, &[fd(&file)]), Some("pread64"));
        assert_eq!(named(libc::SYS_write, &[fd(&null)]), None);
        assert_eq!(named(libc::SYS_write, &[fd(&event)]), None);
        assert_eq!(named(libc::SYS_read, &[fd(&event)]), None);
        rustix::io::read(&event, &mut [0; 8]).unwrap();
        assert_eq!(named(libc::SYS_read, &[fd(&event)]), Some("read"));
        assert_eq!(named(libc::SYS_read, &[usize::MAX]), None);
    }
}
