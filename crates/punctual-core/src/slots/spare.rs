//! The spare slot of a task, which the occupant of its level frees and claims without a locked
//! instruction.
//!
//! A job frees its slot at its start, and often the next spawn of the task is its own. So the slot
//! becomes the *spare* of the level's occupant instead of a free bit, and a spawn from a job of the
//! level takes it, both without the bit set.
//!
//! * *At most one owner.* Only the occupant makes a slot the spare, and only if the task has no
//!   spare yet; one thread at a time occupies the level, and the word of the partition hands the
//!   spare over with the level. The occupant [takes](WordCell::take_own) it, or another thread of
//!   the partition [does](WordCell::take), or a foreign thread [withdraws](WordCell::withdraw) it;
//!   the cell makes these linearizable. The occupant need not compare the spare that it takes with
//!   the one that it has loaded: only the occupant makes spares, so if there is one, it is the
//!   same.
//! * *No slot is hidden.* A thread that finds no free bit takes or withdraws the spare, makes it a
//!   free bit, and looks again before it reports that every slot is taken. It looks again even if
//!   it has found no spare: since its first look the occupant may have made another slot a free
//!   bit, and then have taken the spare.
//! * *No contention.* After a withdrawal the occupant makes no spares until one of its spawns finds
//!   two free bits: a task whose slots are all in use has no spare to be withdrawn.

use super::{Arguments, Slots};
use crate::atomic::{Ordering, is_zero};
use crate::current::CurrentWorker;
use crate::word_cell::WordCell;

/// Value of a spare: the occupant makes no spare.
pub(super) const WITHHELD: u32 = u32::MAX;

impl<A, const N: usize, const W: usize> Slots<A, N, W> {
    /// Frees the slot of the arguments, if they are in one: makes it the spare, or a free bit.
    ///
    /// # Safety
    /// The arguments are those of a job of this task, which the caller owns and has moved out or
    /// dropped. The calling thread occupies the level.
    #[inline(always)]
    pub unsafe fn free(&self, args: Arguments) {
        if args.link == 0 {
            return;
        }
        if N > 1 && is_zero(&self.spare) {
            // Not an exchange: a thread that withdraws in between leaves `WITHHELD`, which may be
            // lost. Release: the next owner writes the slot after this one has read it.
            self.spare.store(args.link as u32, Ordering::Release);
        } else {
            // In 32 bits, so that the common case does not compute the slot.
            let slot = (args.link as u32).wrapping_sub(self.base + 1);
            // SAFETY: by this function's contract.
            unsafe { self.free_slot(slot as usize) };
        }
    }

    /// Makes the spare a free bit, if there is one. For a thread that has found no free bit and
    /// looks for one again afterwards. `cell` is that of the level's partition.
    ///
    /// Real-time safety: enters the kernel only if the thread does not belong to the partition, or
    /// an administrator has moved it to another CPU.
    ///
    /// # Safety
    /// `me` is `None`, or the calling thread has [joined](crate::Partition::join) the partition as
    /// `me`.
    #[cold]
    #[inline(never)]
    pub unsafe fn reclaim(&self, cell: &impl WordCell, me: Option<CurrentWorker>) {
        // Acquire: if the spare was taken, this thread sees the slots that were free bits by then.
        let spare = self.spare.load(Ordering::Acquire);
        let Some(slot) = self.spare_slot(spare) else { return };
        // SAFETY: by this function's contract.
        let taken = me.is_some_and(|me| unsafe { cell.take(&self.spare, spare, me.token()) });
        let slot = if taken { Some(slot) } else { self.spare_slot(cell.withdraw(&self.spare, WITHHELD)) };
        if let Some(slot) = slot {
            // SAFETY: this thread owns the slot now, and its arguments were moved out before.
            unsafe { self.free_slot(slot) };
        }
    }

    /// Returns the slot for a value of `spare`.
    #[inline(always)]
    fn spare_slot(&self, spare: u32) -> Option<usize> {
        let slot = (spare as usize).wrapping_sub(self.base as usize + 1);
        (slot < N).then_some(slot)
    }

    /// Claims the spare, if there is one, and returns the [link](crate::Popped::link) of its node;
    /// for a job of the level.
    ///
    /// # Safety
    /// As for [`put_in_spare`](Self::put_in_spare).
    #[inline(always)]
    pub(super) unsafe fn claim_spare(&self, cell: &impl WordCell, me: CurrentWorker) -> Option<usize> {
        let spare = self.spare.load(Ordering::Relaxed);
        // SAFETY: the token is that of this thread, which has joined, and occupies the level, so no
        // other thread makes a spare. One that was taken is the link of one of this task's nodes.
        unsafe { cell.take_own(&self.spare, spare, me.token()).then_some(spare as usize) }
    }

    /// Allows spares again after one was withdrawn, if there are free slots; for a job of the level
    /// that has just claimed a slot.
    #[inline]
    pub(super) fn allow_spares(&self) {
        if self.spare.load(Ordering::Relaxed) == WITHHELD && self.has_free() {
            // Release: a thread that finds no spare sees the free bits.
            self.spare.store(0, Ordering::Release);
        }
    }

    fn has_free(&self) -> bool {
        self.free.as_flattened().iter().any(|bits| bits.load(Ordering::Relaxed) != 0)
    }

    /// Makes the spare a free bit, between two runs.
    ///
    /// # Safety
    /// No other thread uses the task or its level.
    pub(super) unsafe fn clear_spare(&self) {
        if let Some(slot) = self.spare_slot(self.spare.load(Ordering::Relaxed)) {
            // SAFETY: the spare is a slot without arguments, which no other thread uses.
            unsafe { self.free_slot(slot) };
        }
        self.spare.store(0, Ordering::Relaxed);
    }
}
