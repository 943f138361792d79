//! The port of a partition: Linux threads, one thread that polls, or virtual time; chosen when the app is run.
//!
//! An app's statics are the same on all; which one is in force is a single byte. The clock of virtual time lives here
//! too, since it is the port's state.

pub(crate) mod linux;
pub(crate) mod virtual_time;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use punctual_core::{Instant, Port, Worker};

use crate::app::fault;
use crate::app::runtime::Runtime;

/// What a partition runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Threads that sleep on futexes.
    Threads,
    /// One thread that never enters the kernel.
    Polling,
    /// As `Polling`, where the time-stamp counter does not tell the time: by the vDSO.
    PollingVdso,
    /// Virtual time.
    Virtual,
}

/// Linux or virtual time.
#[derive(Debug)]
pub struct AppPort {
    runtime: &'static Runtime,
    kind: AtomicU8,
    virtual_now: AtomicU64,
    /// In virtual time: whether there is something to look at since the last look.
    woken: AtomicBool,
}

impl AppPort {
    pub(crate) const fn new(runtime: &'static Runtime) -> Self {
        Self {
            runtime,
            kind: AtomicU8::new(Kind::Threads as u8),
            virtual_now: AtomicU64::new(0),
            woken: AtomicBool::new(false),
        }
    }

    pub(crate) fn choose(&self, kind: Kind) {
        self.kind.store(kind as u8, Ordering::Relaxed);
        self.virtual_now.store(0, Ordering::Relaxed);
        self.woken.store(false, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn is_virtual(&self) -> bool {
        self.kind.load(Ordering::Relaxed) == Kind::Virtual as u8
    }

    /// Whether threads of the partition may enter the kernel.
    #[inline]
    pub(crate) fn may_sleep(&self) -> bool {
        self.kind.load(Ordering::Relaxed) == Kind::Threads as u8
    }

    /// Whether somebody has woken a worker since the last [`take_woken`](Self::take_woken). For virtual time.
    pub(crate) fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }

    /// Takes notice of all wakes so far.
    pub(crate) fn take_woken(&self) {
        self.woken.swap(false, Ordering::AcqRel);
    }

    /// Moves the virtual clock forward.
    pub(crate) fn set_now(&self, now: Instant) {
        debug_assert!(self.is_virtual() && now >= self.now());
        self.virtual_now.store(now.as_ticks(), Ordering::Relaxed);
    }
}

impl Port for AppPort {
    #[inline]
    fn now(&self) -> Instant {
        const POLLING: u8 = Kind::Polling as u8;
        const VIRTUAL: u8 = Kind::Virtual as u8;
        match self.kind.load(Ordering::Relaxed) {
            VIRTUAL => Instant::from_ticks(self.virtual_now.load(Ordering::Relaxed)),
            POLLING => linux::tsc::TSC.now(),
            _ => linux::clock::now(),
        }
    }

    #[inline]
    fn wake(&self, worker: &Worker) {
        match self.is_virtual() {
            // The one thread of the partition serves every level.
            true => self.woken.store(true, Ordering::Release),
            false => linux::futex::wake(worker),
        }
    }

    fn wait(&self, worker: &Worker, until: Option<Instant>) {
        linux::futex::wait(worker, until);
    }

    fn wait_turn(&self, turn: &AtomicU32, seen: u32) {
        linux::futex::wait_turn(turn, seen);
    }

    fn wake_turn(&self, turn: &AtomicU32) {
        linux::futex::wake_turn(turn);
    }

    fn lend(&self, lent: &AtomicU32) -> bool {
        linux::futex::lend(lent)
    }

    fn repay(&self, lent: &AtomicU32) {
        linux::futex::repay(lent);
    }

    fn unwinds(&self) {
        fault::leaves_section(self.runtime);
    }
}
