//! Spawns of foreign threads in progress, for which the end of a run waits.

use std::sync::atomic::{AtomicU32, Ordering};

/// The number of foreign threads in the middle of a spawn, and whether more may begin.
pub(crate) struct ForeignSpawns(AtomicU32);

const OPEN: u32 = 1 << 31;

impl ForeignSpawns {
    pub(crate) const fn closed() -> Self {
        Self(AtomicU32::new(0))
    }

    pub(crate) fn open(&self) {
        self.0.fetch_or(OPEN, Ordering::Release);
    }

    pub(crate) fn begin(&self) -> Option<ForeignSpawn<'_>> {
        let spawn = ForeignSpawn(self);
        let before = self.0.fetch_add(1, Ordering::Acquire);
        (before & OPEN != 0).then_some(spawn)
    }

    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.0.load(Ordering::Relaxed) & OPEN != 0
    }

    /// Rejects new spawns, and waits for those in progress, which are short and never block.
    pub(crate) fn close(&self) {
        self.0.fetch_and(!OPEN, Ordering::AcqRel);
        while self.0.load(Ordering::Acquire) != 0 {
            std::thread::yield_now();
        }
    }
}

/// A spawn of a foreign thread in progress.
pub(crate) struct ForeignSpawn<'a>(&'a ForeignSpawns);

impl Drop for ForeignSpawn<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_spawns_when_closed() {
        let spawns = ForeignSpawns::closed();
        assert!(spawns.begin().is_none());
        spawns.open();
        let spawn = spawns.begin();
        assert!(spawns.is_open() && spawn.is_some());
        drop(spawn);
        spawns.close();
        assert!(!spawns.is_open() && spawns.begin().is_none());
        assert_eq!(spawns.0.load(Ordering::Relaxed), 0);
    }
}
