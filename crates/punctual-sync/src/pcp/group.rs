//! The group's state word, its internal lock `table_lock`, and the wait.
//!
//! The *word* records the holders of the group's mutexes, as far as they fit into it:
//!
//! * free: no member holds any,
//! * sole: one member, and the rank of the highest ceiling it holds; no other member holds any and
//!   none waits,
//! * shared: see the [table](super::lock_table).
//!
//! The transitions from free to sole and back are one compare-and-swap each, which combines test
//! and acquisition: the protocol's test passes if no other member holds any mutex. All other
//! transitions happen under `table_lock`, a priority-inheritance futex held for some dozens of
//! instructions. The first thread that locks `table_lock` makes the word shared by one
//! unconditional swap, which returns the previous value, so no thread retries; from then on a sole
//! holder fails to release by itself and locks `table_lock` too. Then test and acquisition are one
//! step because `table_lock` is locked. Before `table_lock` is unlocked, the word returns to free
//! or sole if these describe the state completely.
//!
//! A member that is not admitted waits on its own futex. Under `table_lock` it writes the blocker's
//! TID into it, so that the kernel considers the blocker its owner; then it locks that futex, which
//! lends its priority to the blocker, and along the chain if the blocker waits too. When the
//! blocker releases, under `table_lock`, it finds the member waiting and then unlocks that futex.
//! If the member has not reached the kernel by then, it finds the futex free: nothing is lost in
//! either case. The next member to be admitted becomes a holder under `table_lock` before it is
//! woken, so no third thread slips in between.
//!
//! # Orderings
//!
//! The last holder's actions happen before those of the next one. Releasing writes the word or
//! `table_lock` with release. Locking reads the word with acquire from the last free state or
//! through a chain of swaps that begins there, or passes `table_lock`, with acquire on lock and
//! release on unlock.

use core::cell::Cell;
use core::marker::PhantomData;

use rustix::io::Errno;

use super::lock_table::{LockTable, MEMBERS, bit, members};
use super::{JoinError, PcpLockError, Rank, rank};
use crate::atomic::{AtomicBool, AtomicU32, Ordering, UnsafeCell, const_array, const_new};
use crate::futex;

const FREE: u32 = 0;
const SHARED: u32 = u32::MAX;
const RANK_BITS: u32 = 16;

/// Returns the word for `member` as the only holder.
#[inline(always)]
const fn sole(member: usize, held: Rank) -> u32 {
    if held == 0 { FREE } else { (member as u32 + 1) << RANK_BITS | held }
}

/// Threads and the mutexes they share, under one ceiling test.
///
/// Mutexes that one thread may hold at the same time must belong to one group: the group prevents
/// deadlock between them. Groups are independent of each other. A group has at most 64 members.
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
    table_lock: AtomicU32,
    seats: [Seat; MEMBERS],
    table: UnsafeCell<LockTable>,
}

/// The wait state of one member.
struct Seat {
    /// The futex. Its member writes it under `table_lock` while it does not wait, when no other
    /// thread refers to it.
    wait: AtomicU32,
    /// A releasing thread has made this member a holder. A different thread may unlock the futex,
    /// so this is stored with release and loaded with acquire.
    granted: AtomicBool,
}

impl Seat {
    const_new! {
        fn new() -> Self {
            Self { wait: AtomicU32::new(0), granted: AtomicBool::new(false) }
        }
    }

    /// Returns `true` if its member has been made a holder; resets the grant.
    fn take_grant(&self) -> bool {
        let granted = self.granted.load(Ordering::Acquire);
        if granted {
            self.granted.store(false, Ordering::Relaxed);
        }
        granted
    }
}

// SAFETY: `table` is accessed only in `with_table`, by the thread that holds `table_lock`.
unsafe impl Sync for PcpGroup {}

impl Default for PcpGroup {
    fn default() -> Self {
        Self::new()
    }
}

impl PcpGroup {
    const_new! {
        /// Creates an empty group.
        pub fn new() -> Self {
            Self {
                word: AtomicU32::new(FREE),
                table_lock: AtomicU32::new(0),
                seats: const_array![Seat::new(); MEMBERS],
                table: UnsafeCell::new(LockTable::new()),
            }
        }
    }

    /// Makes the calling thread a member that locks with `priority`.
    ///
    /// The priority stays as declared here until the member is dropped. A larger number is a higher
    /// priority, as for `SCHED_FIFO`. Exclusion and freedom from deadlock depend only on the
    /// declared priorities; the bound on waiting requires that the threads have real-time
    /// priorities in the kernel in the same order. Ordinary threads can be members too.
    ///
    /// Enters the kernel once to get the TID; does not allocate; waits at most for the group's
    /// internal lock.
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

    /// Lets `member` hold a mutex of this rank as soon as the protocol allows. Returns the rank it
    /// held before, to be passed to [`lower`](Self::lower).
    #[inline]
    pub(super) fn raise(&self, member: &Member<'_>, rank: Rank) -> Result<Rank, PcpLockError> {
        let before = member.held.get();
        let after = before.max(rank);
        let (from, to) = (sole(member.index, before), sole(member.index, after));
        let alone = if from == to {
            // Repeats the ceiling test, although the rank stays: others may hold a mutex by now.
            // Relaxed: since this member holds a ceiling that is no lower, no other member has
            // locked the mutex.
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
            // An outer mutex has this ceiling too, so no waiting member can be admitted.
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

    /// Sleeps until the blocker has released, and lends it this thread's priority until then.
    fn wait_for_blocker(&self, member: &Member<'_>) -> Result<(), PcpLockError> {
        member.waits.set(member.waits.get().wrapping_add(1));
        let wait = &self.seats[member.index].wait;
        // Relaxed: `granted` or `table_lock` publishes the changes of others.
        while let Err(refused) = futex::lock_owned(wait, member.thread, Ordering::Relaxed) {
            if self.with_shared(member.thread, |table| table.withdraw(member.index)) {
                // No other thread refers to this futex now, and the next wait overwrites it.
                return Err(match refused {
                    Errno::DEADLK => PcpLockError::Deadlock,
                    other => PcpLockError::Refused(other.raw_os_error()),
                });
            }
            // The blocker has released and is about to unlock the futex: retry.
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
        // The next holder first. Until the others are woken, they still lend this thread their
        // priority.
        let first = freed.granted.map_or(0, bit) & freed.woken;
        for waiting in members(first).chain(members(freed.woken & !first)) {
            let unlocked = futex::unlock_owned(&self.seats[waiting].wait, member.thread, Ordering::Relaxed);
            unlocked.unwrap_or_else(|error| refused(error));
        }
    }

    /// Runs `change` under `table_lock` with the complete state in the table.
    fn with_shared<R>(&self, thread: u32, change: impl FnOnce(&mut LockTable) -> R) -> R {
        self.with_table(thread, |table| {
            // Acquire: the changes of the last holder that did not lock `table_lock`.
            let word = self.word.swap(SHARED, Ordering::Acquire);
            if word != SHARED && word != FREE {
                table.hold((word >> RANK_BITS) as usize - 1, word & ((1 << RANK_BITS) - 1));
            }
            let result = change(table);
            if let Some(holder) = table.settled() {
                let (member, held) = holder.unwrap_or((0, 0));
                table.hold(member, 0);
                // Only the holder of `table_lock` changes a shared word.
                self.word.store(sole(member, held), Ordering::Release);
            }
            result
        })
    }

    /// Runs `change`, which must not panic, under `table_lock`.
    fn with_table<R>(&self, thread: u32, change: impl FnOnce(&mut LockTable) -> R) -> R {
        futex::lock_owned(&self.table_lock, thread, Ordering::Acquire).unwrap_or_else(|error| refused(error));
        // SAFETY: this thread holds `table_lock`, so no other reference to the table exists, and
        // `change` cannot obtain a second one: that would require `table_lock`, which is not
        // reentrant.
        let result = self.table.with_mut(|table| change(unsafe { &mut *table }));
        futex::unlock_owned(&self.table_lock, thread, Ordering::Release)
            .unwrap_or_else(|error| refused(error));
        result
    }
}

#[cold]
fn refused(error: Errno) -> ! {
    panic!(
        "the kernel refuses a priority-inheritance futex ({error}): \
         the kernel has none, or this thread is a fork of the one that joined the group"
    );
}

impl core::fmt::Debug for PcpGroup {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let word = match self.word.load(Ordering::Relaxed) {
            FREE => "free",
            SHARED => "held with waiters",
            _ => "held",
        };
        f.debug_struct("PcpGroup").field("state", &word).finish()
    }
}

/// One thread's membership in a [`PcpGroup`], with its declared priority.
///
/// It is neither `Send` nor `Sync`, so it stays on the thread that joined. Dropping it leaves the
/// group. A leaked member occupies its slot for the lifetime of the group, and its thread cannot
/// join again.
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
    /// The number of waits.
    waits: Cell<u32>,
    _not_send: PhantomData<*const ()>,
}

impl Member<'_> {
    /// Returns the declared priority.
    #[inline]
    pub fn priority(&self) -> u8 {
        self.priority
    }

    /// Returns the number of times the thread has had to wait for a mutex; wraps around.
    #[inline]
    pub fn waits(&self) -> u32 {
        self.waits.get()
    }
}

impl Drop for Member<'_> {
    /// Leaves the group. The member holds no mutex, since locking borrows it.
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
    fn nested_lower_ceiling_has_no_effect() {
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

    /// Adds a member that holds a mutex of this ceiling, with a TID that the kernel does not know:
    /// waiting for it fails at once.
    fn with_holder(group: &PcpGroup, priority: u8, ceiling: u8) -> usize {
        group.with_shared(futex::thread_id(), |table| {
            let index = table.join(0x3fff_fffe, rank(priority)).unwrap();
            table.hold(index, rank(ceiling));
            index
        })
    }

    const NO_SUCH_THREAD: Result<Rank, PcpLockError> = Err(PcpLockError::Refused(Errno::SRCH.raw_os_error()));

    #[test]
    fn waits_once_for_holder_unless_rejected() {
        let group = PcpGroup::new();
        let member = group.join(1).unwrap();
        with_holder(&group, 2, 5);
        let calls = futex::calls();
        assert_eq!(group.raise(&member, rank(5)), NO_SUCH_THREAD);
        assert_eq!((member.waits(), futex::calls() - calls), (1, 1));
    }

    #[test]
    fn tests_ceiling_again_for_nested_mutex() {
        let group = PcpGroup::new();
        let member = group.join(1).unwrap();
        let before = group.raise(&member, rank(5)).unwrap();
        with_holder(&group, 9, 9);
        assert_eq!(group.raise(&member, rank(3)), NO_SUCH_THREAD);
        group.lower(&member, before);
    }

    #[test]
    fn holds_next_to_lower_holder() {
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
    fn takes_grant_once() {
        let group = PcpGroup::new();
        let member = group.join(1).unwrap();
        group.with_shared(member.thread, |table| table.hold(member.index, rank(5)));
        // In the meantime a higher member has been admitted.
        with_holder(&group, 9, 9);
        let seat = &group.seats[member.index];
        seat.granted.store(true, Ordering::Relaxed);
        assert_eq!(group.raise(&member, rank(5)), Ok(0));
        assert!(!seat.take_grant());
        group.lower(&member, 0);
    }

    #[test]
    #[should_panic(expected = "a fork of the one that joined")]
    fn panics_without_thread_number() {
        let group = PcpGroup::new();
        let member = group.join(1).unwrap();
        let before = group.raise(&member, rank(5)).unwrap();
        // A member waits for this one, but on a futex without an owner.
        group.with_shared(member.thread, |table| {
            let waiting = table.join(0x3fff_fffe, rank(2)).unwrap();
            table.wait(waiting, rank(5), member.index);
        });
        group.lower(&member, before);
    }
}
