//! The group's word, its gate, and the way to wait.
//!
//! The *word* says who holds mutexes of the group, as far as that fits into it:
//!
//! * free: nobody holds any,
//! * sole: one member, and the rank of the highest ceiling it holds; nobody else holds any and nobody waits,
//! * shared: see the [table](super::table).
//!
//! From free to sole and back is one compare-and-swap each, which is test and acquisition in one step: the test
//! of the protocol passes if nobody else holds anything. All else happens with the *gate* locked, a
//! priority-inheritance futex held for some dozens of instructions. Whoever has the gate first makes the word shared by one
//! unconditional swap, which says what it was, so nobody retries; from then on a sole holder fails to let go by itself
//! and comes to the gate too. Then the test and the acquisition are one step because the gate is locked.
//! Before the gate is unlocked, the word goes back to free or sole if that says everything.
//!
//! A member that is not admitted waits on a futex of its own. Behind the gate it writes the blocker's thread into it,
//! so that the kernel takes the blocker for its owner; then it locks that futex, which lends its priority to
//! the blocker and along the chain if the blocker waits too. When the blocker lets go, behind the gate, it finds the
//! member waiting and unlocks that futex afterwards. If the member has not come to the kernel by then, it finds the
//! futex free: nothing is lost on either way. The one to be admitted next is made a holder behind the gate
//! before it is woken, so no third thread slips in between.
//!
//! # Orderings
//!
//! What the last holder did happens before what the next one does. Letting go writes the word or the gate
//! with release. Locking reads the word with acquire from the last free or through a chain of swaps that
//! begins there, or passes the gate, which is acquire on the way in and release on the way out.

use core::cell::Cell;
use core::marker::PhantomData;

use rustix::io::Errno;

use super::lock_table::{LockTable, MEMBERS, bit, members};
use super::{JoinError, PcpLockError, Rank, rank};
use crate::atomic::{AtomicBool, AtomicU32, Ordering, UnsafeCell, const_new};
use crate::futex;

const FREE: u32 = 0;
const SHARED: u32 = u32::MAX;
const RANK_BITS: u32 = 16;

/// The word when `member` is the only holder.
#[inline(always)]
const fn sole(member: usize, held: Rank) -> u32 {
    if held == 0 { FREE } else { (member as u32 + 1) << RANK_BITS | held }
}

/// Threads and the mutexes they share, under one ceiling test.
///
/// Mutexes that one thread may hold at the same time belong into one group: that is what keeps them free of deadlock.
/// Groups do not know of each other. A group has room for 64 members.
///
/// ```
/// use punctual_sync::{PcpGroup, PcpMutex};
///
/// let group = PcpGroup::new();
/// let position = PcpMutex::new(&group, 4, [0.0; 2]);
/// let member = group.join(2)?;
/// position.lock(&member, |position| position[1] = 0.5)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PcpGroup {
    word: AtomicU32,
    gate: AtomicU32,
    seats: [Seat; MEMBERS],
    table: UnsafeCell<LockTable>,
}

/// Where one member waits.
struct Seat {
    /// The futex. Its member writes it behind the gate while it does not wait, and then nobody refers to it.
    wait: AtomicU32,
    /// A thread that let go has made this member a holder. That need not be the one that unlocks the futex, so this
    /// is stored with release and loaded with acquire.
    granted: AtomicBool,
}

impl Seat {
    const_new! {
        fn new() -> Self {
            Self { wait: AtomicU32::new(0), granted: AtomicBool::new(false) }
        }
    }

    /// Whether its member has been made a holder; resets that.
    fn take_grant(&self) -> bool {
        let granted = self.granted.load(Ordering::Acquire);
        if granted {
            self.granted.store(false, Ordering::Relaxed);
        }
        granted
    }
}

// SAFETY: `table` is reached only in `with_table`, by the thread that has the gate.
unsafe impl Sync for PcpGroup {}

impl Default for PcpGroup {
    fn default() -> Self {
        Self::new()
    }
}

impl PcpGroup {
    const_new! {
        /// An empty group.
        pub fn new() -> Self {
            Self {
                word: AtomicU32::new(FREE),
                gate: AtomicU32::new(0),
                #[cfg(not(loom))]
                seats: [const { Seat::new() }; MEMBERS],
                #[cfg(loom)]
                seats: core::array::from_fn(|_| Seat::new()),
                table: UnsafeCell::new(LockTable::new()),
            }
        }
    }

    /// Makes the calling thread a member that locks with `priority`.
    ///
    /// The priority stays as it is stated here until the member is dropped. A larger number is a higher priority, as
    /// for `SCHED_FIFO`. Exclusion and freedom from deadlock rest on what is stated; the bound on waiting needs
    /// the threads to have real-time priorities in the kernel in the same order. Ordinary threads can be members too.
    ///
    /// Enters the kernel once to learn the thread's identity; does not allocate; waits for the group's gate at most.
    ///
    /// # Errors
    ///
    /// [`JoinError::Full`] if 64 threads are members, [`JoinError::AlreadyMember`] if this one is.
    pub fn join(&self, priority: u8) -> Result<Member<'_>, JoinError> {
        let thread = futex::thread_id();
        let index = self.with_table(thread, |table| table.join(thread, rank(priority)))?;
        Ok(Member {
            group: self,
            index,
            thread,
            priority,
            held: Cell::new(0),
            waits: Cell::new(0),
            _not_send: PhantomData,
        })
    }

    /// Lets `member` hold a mutex of this rank as soon as the protocol allows. Returns the rank it held before, to be
    /// passed to [`lower`](Self::lower).
    #[inline]
    pub(super) fn raise(&self, member: &Member<'_>, rank: Rank) -> Result<Rank, PcpLockError> {
        let before = member.held.get();
        let after = before.max(rank);
        let (from, to) = (sole(member.index, before), sole(member.index, after));
        let alone = if from == to {
            // The ceiling test once more, although the rank stays: others may hold something by now. Relaxed: since this
            // member holds a ceiling that is no lower, nobody else has locked the mutex.
            self.word.load(Ordering::Relaxed) == from
        } else {
            self.word.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        if !alone {
            self.raise_among_others(member, after)?;
        }
        member.held.set(after);
        Ok(before)
    }

    /// Undoes [`raise`](Self::raise).
    #[inline]
    pub(super) fn lower(&self, member: &Member<'_>, before: Rank) {
        let held = member.held.replace(before);
        if held == before {
            // An outer mutex has this ceiling too, so nobody can be admitted for this.
            return;
        }
        let (from, to) = (sole(member.index, held), sole(member.index, before));
        if self.word.compare_exchange(from, to, Ordering::Release, Ordering::Relaxed).is_err() {
            self.lower_among_others(member, before);
        }
    }

    #[cold]
    fn raise_among_others(&self, member: &Member<'_>, after: Rank) -> Result<(), PcpLockError> {
        let (index, seat) = (member.index, &self.seats[member.index]);
        let attempt = |table: &mut LockTable| {
            if seat.take_grant() {
                return Ok(());
            }
            match table.admit(index) {
                Ok(()) => {
                    table.admitted(index);
                    table.hold(index, after);
                    Ok(())
                }
                Err(blocker) => {
                    let owner = table.thread(blocker);
                    table.wait(index, after, blocker);
                    seat.wait.store(owner, Ordering::Relaxed);
                    Err(())
                }
            }
        };
        while self.with_shared(member.thread, attempt).is_err() {
            self.wait_for_blocker(member)?;
            if seat.take_grant() {
                break;
            }
        }
        Ok(())
    }

    /// Sleeps until the blocker has let go, and lends it this thread's priority meanwhile.
    fn wait_for_blocker(&self, member: &Member<'_>) -> Result<(), PcpLockError> {
        member.waits.set(member.waits.get().wrapping_add(1));
        let wait = &self.seats[member.index].wait;
        // Relaxed: what others did comes with `granted` or through the gate.
        while let Err(refused) = futex::lock_owned(wait, member.thread, Ordering::Relaxed) {
            if self.with_shared(member.thread, |table| table.withdraw(member.index)) {
                // Nobody knows of this futex any more, and the next wait writes it anew.
                return Err(match refused {
                    Errno::DEADLK => PcpLockError::Deadlock,
                    other => PcpLockError::Refused(other.raw_os_error()),
                });
            }
            // The blocker has let go and is about to unlock the futex: it can be had now.
        }
        Ok(())
    }

    #[cold]
    fn lower_among_others(&self, member: &Member<'_>, before: Rank) {
        let freed = self.with_shared(member.thread, |table| {
            let freed = table.lower(member.index, before);
            if let Some(granted) = freed.granted {
                self.seats[granted].granted.store(true, Ordering::Release);
            }
            freed
        });
        // The next holder first. Until the others are told, they still lend this thread their priority.
        let first = freed.granted.map_or(0, bit) & freed.woken;
        for waiting in members(first).chain(members(freed.woken & !first)) {
            let told = futex::unlock_owned(&self.seats[waiting].wait, member.thread, Ordering::Relaxed);
            told.unwrap_or_else(|error| refused(error));
        }
    }

    /// Runs `change` behind the gate with everything in the table.
    fn with_shared<R>(&self, thread: u32, change: impl FnOnce(&mut LockTable) -> R) -> R {
        self.with_table(thread, |table| {
            // Acquire: what the last one did that did not need the gate.
            let word = self.word.swap(SHARED, Ordering::Acquire);
            if word != SHARED && word != FREE {
                table.hold((word >> RANK_BITS) as usize - 1, word & ((1 << RANK_BITS) - 1));
            }
            let result = change(table);
            if let Some(holder) = table.settled() {
                let (member, held) = holder.unwrap_or((0, 0));
                table.hold(member, 0);
                // Only who has the gate changes a shared word.
                self.word.store(sole(member, held), Ordering::Release);
            }
            result
        })
    }

    /// Runs `change`, which must not panic, behind the gate.
    fn with_table<R>(&self, thread: u32, change: impl FnOnce(&mut LockTable) -> R) -> R {
        futex::lock_owned(&self.gate, thread, Ordering::Acquire).unwrap_or_else(|error| refused(error));
        // SAFETY: this thread has the gate, so no other reference to the table exists, and `change` cannot get at it
        // a second time: that would need the gate, which is not re-entrant.
        let result = self.table.with_mut(|table| change(unsafe { &mut *table }));
        futex::unlock_owned(&self.gate, thread, Ordering::Release).unwrap_or_else(|error| refused(error));
        result
    }
}

#[cold]
fn refused(error: Errno) -> ! {
    panic!(
        "the kernel refuses a priority-inheritance futex ({error}): \
         it has none, or this thread is a fork of the one that joined the group"
    );
}

impl core::fmt::Debug for PcpGroup {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let word = match self.word.load(Ordering::Relaxed) {
            FREE => "free",
            SHARED => "held and waited for",
            _ => "held",
        };
        f.debug_struct("PcpGroup").field("state", &word).finish()
    }
}

/// One thread's membership in a [`PcpGroup`], with the priority it stated.
///
/// It stays on the thread that joined: it is neither `Send` nor `Sync`. Dropping it leaves the group. A member that is
/// leaked keeps its place for as long as the group lives, and its thread cannot join again.
///
/// ```compile_fail
/// # use punctual_sync::PcpGroup;
/// static GROUP: PcpGroup = PcpGroup::new();
/// let member = GROUP.join(1).unwrap();
/// std::thread::spawn(move || drop(member));
/// ```
pub struct Member<'g> {
    pub(super) group: &'g PcpGroup,
    pub(super) index: usize,
    thread: u32,
    priority: u8,
    /// The rank of the highest ceiling among the mutexes that this thread holds.
    held: Cell<Rank>,
    /// How many times it had to wait.
    waits: Cell<u32>,
    _not_send: PhantomData<*const ()>,
}

impl Member<'_> {
    /// The priority stated when joining.
    #[inline]
    pub fn priority(&self) -> u8 {
        self.priority
    }

    /// How often the thread had to wait for a mutex so far; the number wraps around.
    #[inline]
    pub fn waits(&self) -> u32 {
        self.waits.get()
    }
}

impl Drop for Member<'_> {
    /// Leaves the group. No mutex is held: locking borrows the member.
    fn drop(&mut self) {
        self.group.with_table(self.thread, |table| table.leave(self.index));
    }
}

impl core::fmt::Debug for Member<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Member").field("priority", &self.priority).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_lower_ceiling_within_lowers_nothing() {
        let group = PcpGroup::new();
        let member = group.join(1).unwrap();
        let word = || group.word.load(Ordering::Relaxed);
        let outside = group.raise(&member, rank(5)).unwrap();
        for lower in [5, 2, 1] {
            let before = group.raise(&member, rank(lower)).unwrap();
            assert_eq!((before, member.held.get(), word()), (rank(5), rank(5), sole(member.index, rank(5))));
            group.lower(&member, before);
        }
        let before = group.raise(&member, rank(7)).unwrap();
        assert_eq!((before, word()), (rank(5), sole(member.index, rank(7))));
        group.lower(&member, before);
        assert_eq!(word(), sole(member.index, rank(5)));
        group.lower(&member, outside);
        assert_eq!(word(), FREE);
    }

    /// Makes somebody a member that holds a mutex of this ceiling, as a thread that the kernel does not know: waiting for
    /// it fails at once.
    fn with_holder(group: &PcpGroup, priority: u8, ceiling: u8) -> usize {
        group.with_shared(futex::thread_id(), |table| {
            let index = table.join(0x3fff_fffe, rank(priority)).unwrap();
            table.hold(index, rank(ceiling));
            index
        })
    }

    const NO_SUCH_THREAD: Result<Rank, PcpLockError> = Err(PcpLockError::Refused(Errno::SRCH.raw_os_error()));

    #[test]
    fn waits_once_for_a_holder_and_no_longer_if_refused() {
        let group = PcpGroup::new();
        let member = group.join(1).unwrap();
        with_holder(&group, 2, 5);
        let calls = futex::calls();
        assert_eq!(group.raise(&member, rank(5)), NO_SUCH_THREAD);
        assert_eq!((member.waits(), futex::calls() - calls), (1, 1));
    }

    #[test]
    fn tests_the_ceiling_again_for_a_mutex_within() {
        let group = PcpGroup::new();
        let member = group.join(1).unwrap();
        let before = group.raise(&member, rank(5)).unwrap();
        with_holder(&group, 9, 9);
        assert_eq!(group.raise(&member, rank(3)), NO_SUCH_THREAD);
        group.lower(&member, before);
    }

    #[test]
    fn holds_beside_a_lower_holder() {
        let group = PcpGroup::new();
        let member = group.join(9).unwrap();
        with_holder(&group, 1, 2);
        let before = group.raise(&member, rank(9)).unwrap();
        let another = group.with_shared(member.thread, |table| {
            let another = table.join(0x3fff_fffd, rank(9)).unwrap();
            table.admit(another)
        });
        assert_eq!(another, Err(member.index));
        group.lower(&member, before);
    }

    #[test]
    fn takes_a_grant_once_and_asks_no_more() {
        let group = PcpGroup::new();
        let member = group.join(1).unwrap();
        group.with_shared(member.thread, |table| table.hold(member.index, rank(5)));
        // Meanwhile a higher one has been admitted.
        with_holder(&group, 9, 9);
        let seat = &group.seats[member.index];
        seat.granted.store(true, Ordering::Relaxed);
        assert_eq!(group.raise(&member, rank(5)), Ok(0));
        assert!(!seat.take_grant());
        group.lower(&member, 0);
    }

    #[test]
    #[should_panic(expected = "a fork of the one that joined")]
    fn panics_if_it_cannot_tell_who_waits() {
        let group = PcpGroup::new();
        let member = group.join(1).unwrap();
        let before = group.raise(&member, rank(5)).unwrap();
        // It waits for this member, but on a futex that nobody owns.
        group.with_shared(member.thread, |table| {
            let waiting = table.join(0x3fff_fffe, rank(2)).unwrap();
            table.wait(waiting, rank(5), member.index);
        });
        group.lower(&member, before);
    }
}
