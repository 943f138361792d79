//! The holders, the waiters and their blockers: the decisions of the protocol, free of atomics.
//!
//! The table belongs to the thread that holds the group's lock `table_lock`, so it is plain data
//! and its rules can be tested one by one. A priority or a ceiling is stored as its *rank*, one
//! higher, so that rank 0 means that no mutex is held. A member that holds several mutexes counts
//! with the highest of their ceilings.
//!
//! # Invariants
//!
//! 1. No two members hold ranks that overlap: ordered by the time of their first lock, holders have
//!    priority 1 ≤ ceiling 1 < priority 2 ≤ ceiling 2 < … Each was admitted only because its
//!    priority was above every ceiling then held by others, no ceiling is below the priority of a
//!    thread that locks under it, and a holder below another is not admitted again until that one
//!    has released. So a mutex has at most one holder, and the blocker of a holder is always a
//!    later one: there is no cycle of waiting threads.
//! 2. A waiting member that lends its priority (`blocker` is a member) has a priority not above
//!    what the blocker holds. The blocker therefore cannot admit it before releasing.
//! 3. No waiting member could be admitted, except while [`LockTable::lower`] runs. That function
//!    grants at most one: of those that could be admitted, the one of the highest priority, whose
//!    ceiling then excludes all the others.

use super::{JoinError, Rank};

/// The maximum number of members of a group.
pub(super) const MEMBERS: usize = if cfg!(loom) { 4 } else { 64 };

/// No member: a waiting thread that has been woken to check again.
const NO_MEMBER: u8 = u8::MAX;

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Its TID; 0 if the slot is free.
    thread: u32,
    /// The rank of its declared priority.
    rank: Rank,
    /// The rank of the highest ceiling among the mutexes that it holds.
    held: Rank,
    /// While it waits: the rank that it will hold, its arrival number, and the member whose futex
    /// it waits for.
    wanted: Rank,
    arrival: u64,
    blocker: u8,
}

const FREE: Slot = Slot { thread: 0, rank: 0, held: 0, wanted: 0, arrival: 0, blocker: NO_MEMBER };

#[derive(Debug)]
pub(super) struct LockTable {
    slots: [Slot; MEMBERS],
    holders: u64,
    waiters: u64,
    arrivals: u64,
}

/// The result of releasing a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Freed {
    /// The waiting member that now holds its wanted rank.
    pub(super) granted: Option<usize>,
    /// The members that the releasing thread has to wake. A granted member outside this set has
    /// been woken before.
    pub(super) woken: u64,
}

/// Returns the members of a set.
pub(super) fn members(mut set: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let first = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(first)
    })
}

impl LockTable {
    pub(super) const fn new() -> Self {
        Self { slots: [FREE; MEMBERS], holders: 0, waiters: 0, arrivals: 0 }
    }

    pub(super) fn join(&mut self, thread: u32, rank: Rank) -> Result<usize, JoinError> {
        if self.slots.iter().any(|slot| slot.thread == thread) {
            return Err(JoinError::AlreadyMember);
        }
        let free = self.slots.iter().position(|slot| slot.thread == 0).ok_or(JoinError::Full)?;
        self.slots[free] = Slot { thread, rank, ..FREE };
        Ok(free)
    }

    /// Frees a slot. Its member holds nothing and does not wait.
    pub(super) fn leave(&mut self, member: usize) {
        debug_assert!((self.holders | self.waiters) & bit(member) == 0, "a member leaves with a mutex");
        self.slots[member] = FREE;
    }

    pub(super) fn thread(&self, member: usize) -> u32 {
        self.slots[member].thread
    }

    /// Records the rank that `member` holds.
    pub(super) fn hold(&mut self, member: usize, held: Rank) {
        self.slots[member].held = held;
        match held {
            0 => self.holders &= !bit(member),
            _ => self.holders |= bit(member),
        }
    }

    /// The Priority Ceiling Protocol's test: succeeds if `member`'s priority is above the ceilings
    /// of all mutexes that others hold. Otherwise returns the holder of the highest of these
    /// ceilings.
    pub(super) fn admit(&self, member: usize) -> Result<(), usize> {
        let others = members(self.holders & !bit(member));
        let Some(top) = others.max_by_key(|&other| self.slots[other].held) else { return Ok(()) };
        let (rank, held) = (self.slots[member].rank, self.slots[top].held);
        if rank > held { Ok(()) } else { Err(top) }
    }

    /// Makes `member` wait for `blocker`, to hold `wanted` afterwards.
    pub(super) fn wait(&mut self, member: usize, wanted: Rank, blocker: usize) {
        let arrival = self.arrivals;
        let slot = &mut self.slots[member];
        if self.waiters & bit(member) == 0 {
            slot.arrival = arrival;
            self.arrivals += 1;
        }
        (slot.wanted, slot.blocker) = (wanted, blocker as u8);
        self.waiters |= bit(member);
    }

    /// Stops `member` from waiting, unless another thread is about to wake it.
    pub(super) fn withdraw(&mut self, member: usize) -> bool {
        let lent = self.waiters & bit(member) != 0 && self.slots[member].blocker != NO_MEMBER;
        if lent {
            self.admitted(member);
        }
        lent
    }

    /// Removes `member` from the waiting ones.
    pub(super) fn admitted(&mut self, member: usize) {
        self.waiters &= !bit(member);
    }

    /// Lowers the rank of `member` to `held`, and admits a member that waited for this.
    pub(super) fn lower(&mut self, member: usize, held: Rank) -> Freed {
        self.hold(member, held);
        let mut woken = 0;
        for waiting in members(self.waiters) {
            let slot = &mut self.slots[waiting];
            if slot.blocker as usize == member && slot.rank > held {
                slot.blocker = NO_MEMBER;
                woken |= bit(waiting);
            }
        }
        let could = members(self.waiters).filter(|&waiting| self.admit(waiting).is_ok());
        // The earliest arrival among those with the highest priority.
        let order =
            |&waiting: &usize| (self.slots[waiting].rank, core::cmp::Reverse(self.slots[waiting].arrival));
        let granted = could.max_by_key(order);
        if let Some(next) = granted {
            debug_assert_eq!(self.slots[next].blocker, NO_MEMBER, "invariant 2");
            self.admitted(next);
            self.hold(next, self.slots[next].wanted);
        }
        Freed { granted, woken }
    }

    /// Returns the only holder and its rank, if no member waits; `Some(None)` if no member holds a
    /// mutex either.
    pub(super) fn settled(&self) -> Option<Option<(usize, Rank)>> {
        if self.waiters != 0 || self.holders.count_ones() > 1 {
            return None;
        }
        Some(members(self.holders).next().map(|holder| (holder, self.slots[holder].held)))
    }
}

pub(super) const fn bit(member: usize) -> u64 {
    1 << member
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Creates a table whose member `i` has rank `ranks[i]`.
    fn table(ranks: &[Rank]) -> LockTable {
        let mut table = LockTable::new();
        for (i, &rank) in ranks.iter().enumerate() {
            assert_eq!(table.join(100 + i as u32, rank), Ok(i));
        }
        table
    }

    #[test]
    fn ceiling_test_is_strict_and_excludes_own_mutexes() {
        let mut table = table(&[1, 3, 4]);
        table.hold(0, 3);
        assert_eq!(table.admit(0), Ok(()), "the member holds the highest ceiling itself");
        assert_eq!(table.admit(1), Err(0), "a priority equal to the ceiling is not above it");
        assert_eq!(table.admit(2), Ok(()));
        table.hold(2, 6);
        assert_eq!(table.admit(0), Err(2), "a later holder keeps the earlier ones from locking more");
        assert_eq!(table.settled(), None, "two holders");
    }

    #[test]
    fn grants_highest_first_then_in_arrival_order() {
        let mut table = table(&[1, 2, 3, 3]);
        table.hold(0, 5);
        for member in [1, 3, 2] {
            table.wait(member, 5, 0);
        }
        let freed = table.lower(0, 0);
        assert_eq!(freed, Freed { granted: Some(3), woken: bit(1) | bit(2) | bit(3) });
        table.wait(2, 5, 3);
        table.wait(1, 5, 3);
        assert_eq!(table.lower(3, 0), Freed { granted: Some(2), woken: bit(1) | bit(2) });
    }

    #[test]
    fn repeated_wait_keeps_position() {
        let mut table = table(&[1, 3, 3, 3]);
        table.hold(0, 5);
        for member in [1, 2, 3, 1] {
            table.wait(member, 5, 0);
        }
        for member in 1..4 {
            assert_eq!(table.lower(member - 1, 0).granted, Some(member));
        }
    }

    #[test]
    fn lowering_in_nest_frees_only_higher_waiters() {
        let mut table = table(&[1, 3, 4]);
        table.hold(0, 5);
        table.wait(1, 5, 0);
        table.wait(2, 5, 0);
        assert_eq!(table.lower(0, 3), Freed { granted: Some(2), woken: bit(2) });
        assert_eq!(table.admit(1), Err(2));
        assert_eq!(table.lower(2, 0), Freed { granted: None, woken: 0 }, "member 0 still blocks member 1");
        assert_eq!(table.lower(0, 0), Freed { granted: Some(1), woken: bit(1) });
        assert_eq!(table.settled(), Some(Some((1, 5))));
    }

    #[test]
    fn waiting_holder_precedes_threads_it_blocks() {
        let mut table = table(&[2, 3, 9]);
        table.hold(0, 4);
        table.hold(2, 9);
        table.wait(1, 4, 2);
        table.wait(0, 4, 2);
        assert_eq!(table.lower(2, 0), Freed { granted: Some(0), woken: bit(0) | bit(1) });
        assert_eq!(table.admit(1), Err(0));
    }

    #[test]
    fn grants_woken_thread_without_second_wake() {
        let mut table = table(&[1, 2, 3]);
        table.hold(0, 5);
        table.wait(1, 5, 0);
        table.wait(2, 5, 0);
        assert_eq!(table.lower(0, 0), Freed { granted: Some(2), woken: bit(1) | bit(2) });
        assert!(!table.withdraw(1), "the member is being woken");
        assert_eq!(table.lower(2, 0), Freed { granted: Some(1), woken: 0 });
    }

    #[test]
    fn does_not_grant_abandoned_wait() {
        let mut table = table(&[1, 2]);
        table.hold(0, 5);
        table.wait(1, 5, 0);
        assert!(table.withdraw(1) && !table.withdraw(1));
        assert_eq!(table.lower(0, 0), Freed { granted: None, woken: 0 });
        assert_eq!(table.settled(), Some(None));
    }

    #[test]
    fn slots_are_given_back_and_counted() {
        let mut table = table(&[1; MEMBERS]);
        assert_eq!(table.join(1, 1), Err(JoinError::Full));
        table.leave(7);
        assert_eq!(table.join(100, 1), Err(JoinError::AlreadyMember));
        assert_eq!(table.join(1, 1), Ok(7));
    }
}
