//! Counts the system calls of the calling thread by number.
//!
//! The kernel counts them by a performance counter on the tracepoint that each call passes, and
//! writes the number of each into shared memory. Neither costs the thread anything while it makes
//! no calls. Requires root and tracefs.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags};

/// Size of the buffer for call numbers, in pages: a power of two. With 4 KiB each, they hold about
/// 1600 calls.
const PAGES: usize = 32;
/// Offset in the page before the buffer at which the kernel stores its write position.
const HEAD: usize = 1024;
/// Type of a record that is an event, and size of its part before the event: its header, and the
/// event's length.
const SAMPLE: u32 = 9;
const BEFORE_EVENT: usize = 12;
/// Offset of the number in the event, if it has the known format.
const NUMBER: usize = 8;
const FORMAT: &str = "field:long id;\toffset:8;\tsize:8;";

/// System calls made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Calls {
    pub(super) count: u64,
    /// Number of calls by name, the most frequent first. Calls that did not fit into the buffer are
    /// missing.
    pub(super) named: Vec<(String, u64)>,
}

/// Counts from its creation on.
#[derive(Debug)]
pub(super) struct Counter {
    count: OwnedFd,
    before: Option<u64>,
    numbers: Option<Numbers>,
}

impl Counter {
    /// Starts counting the system calls of the calling thread, or returns the reason why it cannot.
    pub(super) fn new() -> Result<Self, &'static str> {
        let directories = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
        let event = |place: &&str| fs::read_to_string(format!("{place}/events/raw_syscalls/sys_enter/id"));
        let found = directories.iter().find_map(|place| match event(place) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            id => Some((place, id)),
        });
        let (place, id) = found.ok_or("mount tracefs at /sys/kernel/tracing")?;
        let id = id.map_err(|_| "requires root")?;
        let id = id.trim().parse().map_err(|_| "the kernel's event number is invalid")?;
        let format = fs::read_to_string(format!("{place}/events/raw_syscalls/sys_enter/format"));
        let numbers = format.is_ok_and(|format| format.contains(FORMAT)).then(|| Numbers::new(id)).flatten();
        let count = open(id, false).ok_or("the kernel refuses; it requires root")?;
        let mut counter = Self { count, before: None, numbers };
        counter.before = counter.read();
        if let Some(numbers) = &mut counter.numbers {
            numbers.from = numbers.head();
        }
        Ok(counter)
    }

    /// Returns the calls made since then. Call it before any other system call.
    pub(super) fn end(self) -> Result<Calls, &'static str> {
        let numbers = self.numbers.as_ref().map(|numbers| (numbers, numbers.head()));
        let made = self.read().zip(self.before).map(|(now, then)| now.saturating_sub(then));
        // The call that read `before`, or this one, is included.
        let count = made.ok_or("its counter cannot be read")?.saturating_sub(1);
        let mut named = BTreeMap::<libc::c_long, u64>::new();
        if let Some((numbers, until)) = numbers {
            numbers.each(until, |number| *named.entry(number).or_default() += 1);
        }
        let mut named: Vec<_> = named.into_iter().map(|(number, count)| (name(number), count)).collect();
        named.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Ok(Calls { count, named })
    }

    fn read(&self) -> Option<u64> {
        let mut count = 0_u64;
        // SAFETY: the kernel writes at most the eight bytes of the count.
        let read = unsafe { libc::read(self.count.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
        (read == size_of::<u64>() as isize).then_some(count)
    }
}

/// Opens a counter of an event, of the calling thread on any CPU; with `raw` the kernel also
/// records each event.
fn open(event: u64, raw: bool) -> Option<OwnedFd> {
    /// The first version of the kernel's `perf_event_attr`.
    #[repr(C)]
    struct Attributes {
        kind: u32,
        size: u32,
        config: u64,
        period: u64,
        sample: u64,
        rest: [u64; 4],
    }
    const TRACEPOINT: u32 = 2;
    const SAMPLE_RAW: u64 = 1 << 10;
    const CLOSE_ON_EXEC: libc::c_ulong = 8;
    let (period, sample) = if raw { (1, SAMPLE_RAW) } else { (0, 0) };
    let size = size_of::<Attributes>() as u32;
    let attributes = Attributes { kind: TRACEPOINT, size, config: event, period, sample, rest: [0; 4] };
    // SAFETY: a valid pointer to attributes with their size; the rest are numbers: this thread, any
    // CPU, no group.
    let fd =
        unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attributes, 0, -1, -1, CLOSE_ON_EXEC) };
    // SAFETY: a new descriptor without another owner.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// The call numbers recorded by the kernel, which drops those that do not fit.
#[derive(Debug)]
struct Numbers {
    start: NonNull<u8>,
    page: usize,
    from: u64,
    _event: OwnedFd,
}

impl Numbers {
    fn new(id: u64) -> Option<Self> {
        let event = open(id, true)?;
        // SAFETY: the call takes a number, and writes no memory of ours.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, of the length that the kernel expects for this kind of descriptor.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                (1 + PAGES) * page,
                access,
                MapFlags::SHARED,
                event.as_fd(),
                0,
            )
        };
        let start = NonNull::new(start.ok()?.cast())?;
        Some(Self { start, page, from: 0, _event: event })
    }

    /// Returns the total number of bytes that the kernel has written.
    fn head(&self) -> u64 {
        // SAFETY: the field is in the first page, which is mapped, aligned to its size; the kernel
        // writes it as a whole.
        let head = unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(HEAD).cast()) };
        // Acquire: everything before that position has been written.
        head.load(Ordering::Acquire)
    }

    /// Calls `each` with the number of each call up to `until`.
    fn each(&self, until: u64, mut each: impl FnMut(libc::c_long)) {
        let room = PAGES * self.page;
        let byte = |at: u64| {
            // SAFETY: within the pages after the first; the kernel does not overwrite data before
            // `head`, because the read position is never advanced.
            unsafe { self.start.as_ptr().add(self.page + at as usize % room).read_volatile() }
        };
        let mut at = self.from;
        while at + BEFORE_EVENT as u64 <= until {
            let kind = u32::from_ne_bytes(bytes(byte, at));
            let length = u64::from(u16::from_ne_bytes(bytes(byte, at + 6)));
            if kind == SAMPLE && length >= (BEFORE_EVENT + NUMBER + 8) as u64 {
                each(libc::c_long::from_ne_bytes(bytes(byte, at + (BEFORE_EVENT + NUMBER) as u64)));
            }
            if length == 0 {
                return;
            }
            at += length;
        }
    }
}

impl Drop for Numbers {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and no reference into it exists.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), (1 + PAGES) * self.page) };
    }
}

fn bytes<const N: usize>(byte: impl Fn(u64) -> u8, at: u64) -> [u8; N] {
    std::array::from_fn(|index| byte(at + index as u64))
}

/// Returns the name of a call, or its number if it is rare.
fn name(number: libc::c_long) -> String {
    macro_rules! names {
        ($($name:ident)*) => {
            match number {
                $(libc::$name => stringify!($name).trim_start_matches("SYS_").to_owned(),)*
                number => format!("number {number}"),
            }
        };
    }
    names! {
        SYS_brk SYS_clock_gettime SYS_clock_nanosleep SYS_clone SYS_clone3 SYS_close SYS_connect SYS_dup SYS_epoll_ctl
        SYS_epoll_pwait SYS_eventfd2 SYS_execve SYS_exit SYS_exit_group SYS_fcntl SYS_fdatasync SYS_flock SYS_fstat SYS_fsync
        SYS_ftruncate SYS_futex SYS_getcpu SYS_getdents64 SYS_getpid SYS_getrandom SYS_getrusage SYS_gettid SYS_gettimeofday
        SYS_getuid SYS_ioctl SYS_kill SYS_lseek SYS_madvise SYS_membarrier SYS_mlock SYS_mlockall SYS_mmap SYS_mprotect
        SYS_mremap SYS_munmap SYS_nanosleep SYS_newfstatat SYS_openat SYS_pipe2 SYS_ppoll SYS_prctl SYS_pread64 SYS_pselect6
        SYS_pwrite64 SYS_read SYS_readlinkat SYS_readv SYS_recvfrom SYS_recvmsg SYS_restart_syscall SYS_rseq
        SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_sched_getaffinity SYS_sched_setaffinity
        SYS_sched_setscheduler SYS_sched_yield SYS_sendmsg SYS_sendto SYS_sigaltstack SYS_socket SYS_statx SYS_tgkill
        SYS_timerfd_settime SYS_uname SYS_unlinkat SYS_wait4 SYS_write SYS_writev
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_names_calls_of_this_thread() {
        let counter = match Counter::new() {
            Ok(counter) => counter,
            Err(why) => return test_skip::skip(test_skip::Need::System("perf events"), why),
        };
        (0..3).for_each(|_| {
            std::hint::black_box(rustix::thread::gettid());
        });
        std::hint::black_box(rustix::process::getuid());
        let calls = counter.end().unwrap();
        assert_eq!(calls.count, 4, "{calls:?}");
        if calls.named.is_empty() {
            return test_skip::skip(test_skip::Need::System("memory for perf events"), "names of calls");
        }
        let of = |wanted: &str| calls.named.iter().find(|(name, _)| name == wanted).map(|(_, count)| *count);
        assert_eq!((of("gettid"), of("getuid")), (Some(3), Some(1)), "{calls:?}");
    }

    #[test]
    fn names_rare_system_call_by_number() {
        assert_eq!(name(libc::SYS_futex), "futex");
        assert_eq!(name(987_654), "number 987654");
    }
}
