//! The gate for spawns of foreign threads, which lets the end of a run wait for them.

use std::sync::atomic::{AtomicU32, Ordering};

/// The number of foreign threads in the middle of a spawn, and whether more may enter.
pub(crate) struct SpawnGate(AtomicU32);

const OPEN: u32 = 1 << 31;

impl SpawnGate {
    pub(crate) const fn closed() -> Self {
        Self(AtomicU32::new(0))
    }

    pub(crate) fn open(&self) {
        self.0.fetch_or(OPEN, Ordering::Release);
    }

    pub(crate) fn enter(&self) -> Option<GatePass<'_>> {
        let pass = GatePass(self);
        let before = self.0.fetch_add(1, Ordering::Acquire);
        (before & OPEN != 0).then_some(pass)
    }

    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.0.load(Ordering::Relaxed) & OPEN != 0
    }

    /// Refuses new passes, and waits until all are dropped. Passes are short-lived, and their
    /// holders never block.
    pub(crate) fn close(&self) {
        self.0.fetch_and(!OPEN, Ordering::AcqRel);
        while self.0.load(Ordering::Acquire) != 0 {
            std::thread::yield_now();
        }
    }
}

/// A foreign thread in the middle of a spawn.
pub(crate) struct GatePass<'a>(&'a SpawnGate);

impl Drop for GatePass<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_entry_when_closed() {
        let gate = SpawnGate::closed();
        assert!(gate.enter().is_none());
        gate.open();
        let pass = gate.enter();
        assert!(gate.is_open() && pass.is_some());
        drop(pass);
        gate.close();
        assert!(!gate.is_open() && gate.enter().is_none());
        assert_eq!(gate.0.load(Ordering::Relaxed), 0);
    }
}
