//! The port of an app: Linux threads or virtual time, chosen when it is run.
//!
//! An app's statics are the same on both; which one is in force is a single byte. The clock of virtual
//! time lives here too, since it is the port's state.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use punctual_core::{Instant, Port, Worker};

use crate::linux;

/// Linux or virtual time.
#[derive(Debug)]
pub struct AppPort {
    virtual_time: AtomicBool,
    virtual_now: AtomicU64,
    /// In virtual time: whether there is something to look at since the last look.
    woken: AtomicBool,
}

impl AppPort {
    pub(crate) const fn new() -> Self {
        Self {
            virtual_time: AtomicBool::new(false),
            virtual_now: AtomicU64::new(0),
            woken: AtomicBool::new(false),
        }
    }

    pub(crate) fn choose(&self, virtual_time: bool) {
        self.virtual_time.store(virtual_time, Ordering::Relaxed);
        self.virtual_now.store(0, Ordering::Relaxed);
        self.woken.store(false, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn is_virtual(&self) -> bool {
        self.virtual_time.load(Ordering::Relaxed)
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
        if self.is_virtual() {
            return Instant::from_ticks(self.virtual_now.load(Ordering::Relaxed));
        }
        linux::clock::now()
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
}
