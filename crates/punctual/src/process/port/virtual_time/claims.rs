//! Locks between partitions in virtual time, in which a thread that has the turn may neither spin
//! nor sleep in the kernel.
//!
//! A partition that cannot get a lock pauses. A released lock is granted to the next partition, in
//! the order of the real locks: by arrival within a group, and to the highest level that passes the
//! test of the Priority Ceiling Protocol.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::port::AppPort;

/// A lock that a partition requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The lock of a group, identified by its address.
    Group(usize),
    /// A mutex with this ceiling, requested by a job of this level.
    Ceiling { level: u8, ceiling: u8 },
}

/// The claims that are held, and those that are waited for.
#[derive(Debug)]
pub(crate) struct Claims(Mutex<LockTable>);

impl Claims {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(LockTable { held: Vec::new(), waiting: Vec::new() }))
    }

    /// Waits until partition `who`, with this port, is granted `claim`; `pause` returns when the
    /// partition is woken.
    pub(crate) fn acquire(&self, who: usize, claim: Claim, port: &AppPort, pause: impl Fn()) {
        self.lock().ask(who, claim);
        loop {
            // A wake from here on requires another check.
            port.take_woken();
            if !self.lock().waits(who) {
                return;
            }
            pause();
        }
    }

    /// Releases a claim; returns the partitions that were granted theirs.
    pub(crate) fn give_up(&self, who: usize, claim: Claim) -> Vec<usize> {
        self.lock().give_up(who, claim)
    }

    fn lock(&self) -> MutexGuard<'_, LockTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The decisions alone: partitions are numbers, and nothing waits.
#[derive(Debug)]
struct LockTable {
    /// Holders with their claims, innermost last.
    held: Vec<(usize, Claim)>,
    /// Waiting partitions with their claims, in order of arrival. A partition waits for one claim
    /// at a time.
    waiting: Vec<(usize, Claim)>,
}

impl LockTable {
    /// Grants `who` the claim, or else makes it wait.
    fn ask(&mut self, who: usize, claim: Claim) {
        self.waiting.push((who, claim));
        self.grant();
    }

    fn waits(&self, who: usize) -> bool {
        self.waiting.iter().any(|(waiting, _)| *waiting == who)
    }

    /// Releases a claim; returns the partitions that were granted theirs.
    fn give_up(&mut self, who: usize, claim: Claim) -> Vec<usize> {
        let innermost = self.held.iter().rposition(|held| *held == (who, claim));
        self.held.remove(innermost.expect("what is given up was held"));
        self.grant()
    }

    /// Grants what can be granted.
    fn grant(&mut self) -> Vec<usize> {
        let mut granted = Vec::new();
        while let Some(next) = self.next() {
            let next = self.waiting.remove(next);
            self.held.push(next);
            granted.push(next.0);
        }
        granted
    }

    /// Returns the index in `waiting` of the claim to be granted next: of the highest level, the
    /// first to arrive.
    fn next(&self) -> Option<usize> {
        let may = self.waiting.iter().enumerate().filter(|(_, (who, claim))| self.may(*who, *claim));
        let level = |claim: &Claim| match claim {
            Claim::Group(_) => 0,
            Claim::Ceiling { level, .. } => *level,
        };
        may.rev().max_by_key(|(_, (_, claim))| level(claim)).map(|(place, _)| place)
    }

    /// Returns whether no claim that others hold conflicts.
    fn may(&self, who: usize, claim: Claim) -> bool {
        let mut others = self.held.iter().filter(|(holder, _)| *holder != who).map(|(_, held)| held);
        match claim {
            Claim::Group(_) => others.all(|held| *held != claim),
            // Its level is above every ceiling that others hold.
            Claim::Ceiling { level, .. } => {
                !others.any(|held| matches!(held, Claim::Ceiling { ceiling, .. } if level <= *ceiling))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUS: Claim = Claim::Group(1);
    const DISK: Claim = Claim::Group(2);

    fn ceiling(level: u8, ceiling: u8) -> Claim {
        Claim::Ceiling { level, ceiling }
    }

    fn table(asks: &[(usize, Claim)]) -> LockTable {
        let mut table = LockTable { held: Vec::new(), waiting: Vec::new() };
        asks.iter().for_each(|&(who, claim)| table.ask(who, claim));
        table
    }

    #[track_caller]
    fn assert_waiting(table: &LockTable, expected: &[usize]) {
        assert_eq!(table.waiting.iter().map(|(who, _)| *who).collect::<Vec<_>>(), expected, "{table:?}");
    }

    #[test]
    fn serves_lock_group_in_arrival_order() {
        let mut table = table(&[(0, BUS), (2, BUS), (1, BUS), (3, DISK)]);
        assert_waiting(&table, &[2, 1]);
        assert_eq!(table.give_up(3, DISK), [0_usize; 0], "groups do not know of each other");
        assert_eq!(table.give_up(0, BUS), [2]);
        table.ask(0, BUS);
        assert_waiting(&table, &[1, 0]);
        assert_eq!(table.give_up(2, BUS), [1]);
        assert_eq!(table.give_up(1, BUS), [0]);
    }

    #[test]
    fn level_passes_only_above_ceilings_held_by_others() {
        let mut table = table(&[(1, ceiling(1, 2)), (2, ceiling(2, 2)), (3, ceiling(3, 3))]);
        assert_waiting(&table, &[2]);
        table.ask(1, ceiling(1, 1));
        assert_waiting(&table, &[2, 1]);
        assert_eq!(table.give_up(3, ceiling(3, 3)), [1], "its own ceilings do not count");
        assert_eq!(table.give_up(1, ceiling(1, 1)), [0_usize; 0]);
        assert_eq!(table.give_up(1, ceiling(1, 2)), [2]);
    }

    #[test]
    fn highest_passing_job_locks_and_blocks_others() {
        let mut table =
            table(&[(0, ceiling(0, 9)), (1, ceiling(1, 9)), (5, ceiling(5, 9)), (3, ceiling(3, 9))]);
        assert_eq!(table.give_up(0, ceiling(0, 9)), [5]);
        table.ask(6, ceiling(6, 9));
        assert_waiting(&table, &[1, 3, 6]);
        assert_eq!(table.give_up(5, ceiling(5, 9)), [6], "it came later and is higher");
        assert_eq!(table.give_up(6, ceiling(6, 9)), [3]);
        assert_eq!(table.give_up(3, ceiling(3, 9)), [1]);
    }

    #[test]
    fn free_mutex_below_system_ceiling_is_not_granted() {
        // The ceiling blocking of the protocol: the mutex that 2 requests is free.
        let mut table = table(&[(1, ceiling(1, 3)), (2, ceiling(2, 2))]);
        assert_waiting(&table, &[2]);
        table.ask(1, ceiling(1, 2));
        assert_waiting(&table, &[2]);
        assert_eq!(table.give_up(1, ceiling(1, 2)), [0_usize; 0]);
        assert_eq!(table.give_up(1, ceiling(1, 3)), [2]);
    }
}
