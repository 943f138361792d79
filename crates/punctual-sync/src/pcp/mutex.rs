//! The mutex: a value, its ceiling, and the member that holds it.

use super::{Member, PcpGroup, PcpLockError, Rank, rank};
use crate::atomic::{AtomicU32, Ordering, UnsafeCell, const_new};

/// No member's mark.
const NONE: u32 = 0;

/// A value that the members of a [`PcpGroup`] use in turn, under the original Priority Ceiling
/// Protocol.
///
/// ```
/// use punctual_sync::{PcpLockError, PcpGroup, PcpMutex};
///
/// let group = PcpGroup::new();
/// let count = PcpMutex::new(&group, 9, 0);
/// let member = group.join(9)?;
///
/// assert_eq!(count.lock(&member, |count| { *count += 1; *count }), Ok(1));
/// let inner = count.lock(&member, |_| count.lock(&member, |_| ()))?;
/// assert_eq!(inner, Err(PcpLockError::Reentrant));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PcpMutex<'g, T> {
    group: &'g PcpGroup,
    ceiling: u8,
    /// The holder's mark. Only a comparison with the reader's own mark is meaningful, and only the
    /// reader writes and erases that mark, so no ordering is needed.
    holder: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time, the holder of the mutex, accesses the value, hence `T: Send`; the
// rest is atomic.
unsafe impl<T: Send> Sync for PcpMutex<'_, T> {}

impl<'g, T> PcpMutex<'g, T> {
    const_new! {
        /// Creates a mutex of `group` for threads whose priorities are not above `ceiling`.
        pub fn new(group: &'g PcpGroup, ceiling: u8, value: T) -> Self {
            Self { group, ceiling, holder: AtomicU32::new(NONE), value: UnsafeCell::new(value) }
        }
    }

    /// Runs `critical` with exclusive access to the value.
    ///
    /// Locks may be nested, also in different orders on different threads, and end in the reverse
    /// order. See the [module](crate::pcp) for cost and waiting. If `critical` panics, the mutex is
    /// unlocked and the panic continues; the next thread finds the value as the panic left it.
    ///
    /// # Errors
    ///
    /// Returns a [`PcpLockError`] if `critical` has not run.
    ///
    /// # Panics
    ///
    /// If the kernel has no priority-inheritance futexes, or if the member was created before a
    /// fork, and another thread is involved.
    #[inline]
    pub fn lock<R>(
        &self,
        member: &Member<'g>,
        critical: impl FnOnce(&mut T) -> R,
    ) -> Result<R, PcpLockError> {
        if !core::ptr::eq(member.group, self.group) {
            return Err(PcpLockError::ForeignMember);
        }
        if member.priority() > self.ceiling {
            return Err(PcpLockError::AboveCeiling { priority: member.priority(), ceiling: self.ceiling });
        }
        let mark = member.index as u32 + 1;
        if self.holder.load(Ordering::Relaxed) == mark {
            return Err(PcpLockError::Reentrant);
        }
        let before = self.group.raise(member, rank(self.ceiling))?;
        self.holder.store(mark, Ordering::Relaxed);
        let _held = Held { holder: &self.holder, member, before };
        // SAFETY: `raise` has admitted this member to the ceiling, which by the table's first
        // invariant no other member holds, so no other thread is between its `raise` and its
        // `lower`. This thread is not inside an outer lock of this mutex either: its mark was not
        // set. `lower` runs when `_held` is dropped, after the reference has ended.
        Ok(self.value.with_mut(|value| critical(unsafe { &mut *value })))
    }

    /// Returns the mutex's ceiling.
    #[inline]
    pub fn ceiling(&self) -> u8 {
        self.ceiling
    }

    /// Returns the value without locking: the mutable borrow proves that no other reference exists.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: `self` is borrowed mutably for the lifetime of the result.
        self.value.with_mut(|value| unsafe { &mut *value })
    }
}

/// A held mutex; released when dropped, even if the critical section panics.
struct Held<'a, 'g> {
    holder: &'a AtomicU32,
    member: &'a Member<'g>,
    before: Rank,
}

impl Drop for Held<'_, '_> {
    #[inline]
    fn drop(&mut self) {
        // Before the mutex is free: afterwards the mark is the next holder's.
        self.holder.store(NONE, Ordering::Relaxed);
        self.member.group.lower(self.member, self.before);
    }
}

impl<T> core::fmt::Debug for PcpMutex<'_, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PcpMutex").field("ceiling", &self.ceiling).finish_non_exhaustive()
    }
}
