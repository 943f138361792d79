//! The gate through which threads of no app come to spawn, so that the end of a run can wait for them.

use std::sync::atomic::{AtomicU32, Ordering};

/// How many threads of no app are in the middle of a spawn, and whether any may begin one.
pub(crate) struct Outside(AtomicU32);

const OPEN: u32 = 1 << 31;

impl Outside {
    pub(crate) const fn closed() -> Self {
        Self(AtomicU32::new(0))
    }

    pub(crate) fn open(&self) {
        self.0.fetch_or(OPEN, Ordering::Release);
    }

    pub(crate) fn enter(&self) -> Option<Visit<'_>> {
        let visit = Visit(self);
        let before = self.0.fetch_add(1, Ordering::Acquire);
        (before & OPEN != 0).then_some(visit)
    }

    /// Lets nobody in and waits until everybody is out. Visits are short and never block.
    pub(crate) fn close(&self) {
        self.0.fetch_and(!OPEN, Ordering::AcqRel);
        while self.0.load(Ordering::Acquire) != 0 {
            std::thread::yield_now();
        }
    }
}

/// A thread of no app, in the middle of a spawn.
pub(crate) struct Visit<'a>(&'a Outside);

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_comes_in_when_closed() {
        let outside = Outside::closed();
        assert!(outside.enter().is_none());
        outside.open();
        let visit = outside.enter();
        assert!(visit.is_some());
        drop(visit);
        outside.close();
        assert!(outside.enter().is_none());
        assert_eq!(outside.0.load(Ordering::Relaxed), 0);
    }
}
