//! An alarm without a timer: a perf event that counts the thread's CPU time, and sends `SIGTRAP`
//! when it has elapsed.
//!
//! The event counts while the thread has a CPU. So CPU time of other threads of Linux, and the
//! thread's own sleep, delay the alarm: for the former the CPU has to be isolated, for the latter
//! the event is set again after each sleep.
//!
//! See `perf_event_open(2)`, `sigtrap`. From Linux 5.19 on a blocked signal stays pending; before,
//! it would kill the process.

use core::mem;
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::io;

/// The event's descriptor.
static EVENT: AtomicI32 = AtomicI32::new(-1);
/// Set while the event counts. It counts repeatedly until it is disabled.
static IS_ENABLED: AtomicBool = AtomicBool::new(false);

/// `struct perf_event_attr` up to its seventh version, which has `sig_data`.
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    rest: [u64; 10],
}

const _: () = assert!(size_of::<Attributes>() == 128);

const TYPE_SOFTWARE: u32 = 1;
const CPU_CLOCK: u64 = 0;

/// Flags: initially disabled; removed on `exec`, which `sigtrap` requires; the signal.
const DISABLED: u64 = 1 << 0;
const REMOVE_ON_EXEC: u64 = 1 << 36;
const SIGTRAP: u64 = 1 << 37;

const CLOSE_ON_EXEC: u64 = 1 << 3;

/// Requests of `ioctl`.
const ENABLE: u64 = 0x2400;
const DISABLE: u64 = 0x2401;
const PERIOD: u64 = 0x4008_2404;

/// Opens the event for the calling thread.
pub(super) fn open() -> io::Result<()> {
    // SAFETY: all zero is an event that counts nothing.
    let mut attributes: Attributes = unsafe { mem::zeroed() };
    attributes.kind = TYPE_SOFTWARE;
    attributes.size = size_of::<Attributes>() as u32;
    attributes.config = CPU_CLOCK;
    attributes.sample_period = u64::MAX >> 1;
    attributes.flags = DISABLED | REMOVE_ON_EXEC | SIGTRAP;
    // SAFETY: the structure is filled in, and only read.
    let event =
        unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attributes, 0, -1, -1, CLOSE_ON_EXEC) };
    if event < 0 {
        let error = io::Error::last_os_error();
        return Err(io::Error::new(
            error.kind(),
            std::format!(
                "no perf event preempts here: {error}; it takes Linux 5.19 and CAP_PERFMON, or at most 1 in \
                 /proc/sys/kernel/perf_event_paranoid"
            ),
        ));
    }
    EVENT.store(event as i32, Ordering::Relaxed);
    Ok(())
}

/// Arms the event: the signal comes after `nanoseconds` of the thread's CPU time, at least 10 000.
pub(super) fn arm(nanoseconds: u64) {
    let period = nanoseconds.clamp(1, u64::MAX >> 1);
    request(PERIOD, (&raw const period).expose_provenance());
    if !IS_ENABLED.swap(true, Ordering::Relaxed) {
        request(ENABLE, 0);
    }
}

/// Disarms the event.
pub(super) fn disarm() {
    if IS_ENABLED.swap(false, Ordering::Relaxed) {
        request(DISABLE, 0);
    }
}

/// Closes the event. A signal in flight still comes.
pub(super) fn close() {
    disarm();
    // SAFETY: the descriptor of `open`, which no other code uses.
    unsafe { libc::close(EVENT.swap(-1, Ordering::Relaxed)) };
}

/// Leaves `errno` unchanged: with an open event and these arguments it does not fail.
fn request(request: u64, argument: usize) {
    // SAFETY: the event is open, and an argument that is an address points to a number.
    unsafe { libc::ioctl(EVENT.load(Ordering::Relaxed), request as _, argument) };
}
