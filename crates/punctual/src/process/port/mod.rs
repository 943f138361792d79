//! The port of a partition: Linux threads, one polling thread, or virtual time; selected when the
//! app is run.
//!
//! An app's statics are the same on all of them; a single byte selects the one in use. The clock of
//! virtual time is here, too, because it is state of the port.

pub(crate) mod linux;
pub(crate) mod virtual_time;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use punctual_core::{Duration, Instant, Port, Stamp, Worker};

/// Error of the operating system.
pub(crate) type SystemError = std::io::Error;

/// Returns the remedy for an error, as the end of a message; empty if it is unknown.
pub(crate) fn remedy(error: &SystemError) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::ENOMEM) => {
            "; raise the limits of processes (`ulimit -u`, pids.max of the control group) and memory (`ulimit -v`), or set smaller \
             stacks with PUNCTUAL_STACK, in KiB"
        }
        Some(libc::EMFILE) => "; raise the limit of open files (`ulimit -n`)",
        _ => "",
    }
}

/// Declares statics with a value for each thread.
#[allow(unused_macros, reason = "async tasks alone use it")]
macro_rules! per_thread {
    ($($(#[$attribute:meta])* static $name:ident: $type:ty = $value:expr;)*) => {
        std::thread_local! {
            $($(#[$attribute])* static $name: std::cell::Cell<$type> = const { std::cell::Cell::new($value) };)*
        }
    };
}

#[allow(unused_imports, reason = "async tasks alone use it")]
pub(crate) use per_thread;

/// Platform of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Threads that sleep on futexes.
    Threads,
    /// One thread that never enters the kernel.
    Polling,
    /// As `Polling`, with the vDSO's clock where the time-stamp counter cannot be used.
    PollingVdso,
    /// Virtual time.
    Virtual,
}

/// Interface by which a port notifies its app.
pub(crate) trait Host: Sync + std::fmt::Debug {
    /// A worker is about to sleep.
    fn about_to_sleep(&'static self);

    /// A panic is about to leave a critical section, whose level is still held.
    fn unwinds(&'static self);
}

/// Linux or virtual time.
#[derive(Debug)]
pub struct AppPort {
    host: &'static dyn Host,
    kind: AtomicU8,
    virtual_now: AtomicU64,
    /// Time that a worker spins before it sleeps, in ns.
    spin_ns: AtomicU32,
    /// In virtual time: set when a worker is woken, cleared by [`take_woken`](Self::take_woken).
    woken: AtomicBool,
}

impl AppPort {
    pub(crate) const fn new(host: &'static dyn Host) -> Self {
        Self {
            host,
            kind: AtomicU8::new(Kind::Threads as u8),
            virtual_now: AtomicU64::new(0),
            spin_ns: AtomicU32::new(0),
            woken: AtomicBool::new(false),
        }
    }

    pub(crate) fn choose(&self, kind: Kind) {
        self.kind.store(kind as u8, Ordering::Relaxed);
        self.virtual_now.store(0, Ordering::Relaxed);
        self.woken.store(false, Ordering::Relaxed);
    }

    /// Sets the time that a worker spins before it sleeps.
    pub(crate) fn spin_for(&self, ns: u32) {
        self.spin_ns.store(ns, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn is_virtual(&self) -> bool {
        self.kind.load(Ordering::Relaxed) == Kind::Virtual as u8
    }

    /// Returns whether threads of the partition may enter the kernel.
    #[inline]
    pub(crate) fn may_sleep(&self) -> bool {
        self.kind.load(Ordering::Relaxed) == Kind::Threads as u8
    }

    /// Returns whether a worker has been woken since the last [`take_woken`](Self::take_woken). For
    /// virtual time.
    pub(crate) fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }

    /// Clears the note of all wakes so far.
    pub(crate) fn take_woken(&self) {
        self.woken.swap(false, Ordering::AcqRel);
    }

    /// Returns the time, from `kernel` on threads that may enter the kernel.
    #[inline(always)]
    fn read_clock(&self, kernel: impl FnOnce() -> Instant) -> Instant {
        const POLLING: u8 = Kind::Polling as u8;
        const VIRTUAL: u8 = Kind::Virtual as u8;
        match self.kind.load(Ordering::Relaxed) {
            VIRTUAL => Instant::from_ticks(self.virtual_now.load(Ordering::Relaxed)),
            POLLING => linux::tsc::TSC.now(),
            _ => kernel(),
        }
    }

    /// Notifies the host of a worker's sleep, and returns the stamp `now` if it is still recent.
    fn before_sleep(&self, now: Stamp) -> Stamp {
        self.host.about_to_sleep();
        // After a spin the time is another one.
        now.filter(|_| self.spin_ns.load(Ordering::Relaxed) == 0)
    }

    /// Moves the virtual clock forward.
    pub(crate) fn set_now(&self, now: Instant) {
        debug_assert!(self.is_virtual() && now >= self.now());
        self.virtual_now.store(now.as_ticks(), Ordering::Relaxed);
    }
}

impl Port for AppPort {
    type Word = linux::word::PartitionWord;

    #[inline]
    fn now(&self) -> Instant {
        self.read_clock(linux::clock::now)
    }

    const STAMP_ERROR: Duration = linux::counter::ERROR;

    /// From the processor's counter if the kernel derives its clock from it.
    #[inline]
    fn stamp(&self) -> Instant {
        self.read_clock(linux::counter::now)
    }

    #[inline]
    fn wake(&self, worker: &Worker) {
        match self.is_virtual() {
            // The only thread of the partition serves every level.
            true => self.woken.store(true, Ordering::Release),
            false => linux::futex::wake(worker),
        }
    }

    #[inline]
    fn spin(&self, worker: &Worker, until: impl FnOnce() -> Option<Instant>, is_over: impl Fn() -> bool) {
        let limit = self.spin_ns.load(Ordering::Relaxed);
        if limit != 0 && self.may_sleep() {
            linux::spin::spin(limit, until(), || linux::futex::is_signalled(worker) || is_over());
        }
    }

    fn wait(&self, worker: &Worker, until: Option<Instant>, now: Stamp) -> bool {
        linux::futex::wait(worker, until, self.before_sleep(now))
    }

    fn sleep_until(&self, worker: &Worker, until: Instant, now: Stamp) -> bool {
        linux::futex::sleep_until(worker, until, self.before_sleep(now))
    }

    fn wait_while(&self, count: &AtomicU32, seen: u32) {
        self.host.about_to_sleep();
        linux::futex::wait_while(count, seen);
    }

    fn wake_all(&self, count: &AtomicU32) {
        linux::futex::wake_all(count);
    }

    fn boost(&self, boost: &AtomicU32) -> bool {
        linux::futex::boost(boost)
    }

    fn unboost(&self, boost: &AtomicU32) {
        linux::futex::unboost(boost);
    }

    fn pushed(&self) {
        if self.is_virtual() {
            self.woken.store(true, Ordering::Release);
        }
    }

    fn unwinds(&self) {
        self.host.unwinds();
    }
}
