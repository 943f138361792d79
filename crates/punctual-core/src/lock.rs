//! Resources and the lock on them.
//!
//! A [`Resource`] is a value that several tasks use. [`Locked`] is the handle in a task's context:
//! the right to lock the resource, at the task's level, up to the resource's ceiling, both known at
//! compile time. Locking raises the partition to the ceiling at once, so a task that might need the
//! resource cannot start until it is unlocked. A lock costs two atomic changes of the partition's
//! word, and nothing for the highest task that uses the resource.
//!
//! ```
//! use punctual_core::Mutex;
//!
//! /// Generic over the origin of the counter.
//! fn increment(mut counter: impl Mutex<T = u32>) -> u32 {
//!     counter.lock(|n| {
//!         *n += 1;
//!         *n
//!     })
//! }
//! ```

use core::mem::{ManuallyDrop, MaybeUninit};

use crate::atomic::UnsafeCell;
use crate::current::CurrentWorker;
use crate::partition::{Dispatch, Partition, VariantOf};
use crate::port::Port;
use crate::word::{MAX_LEVEL, Word, bit};
use crate::word_cell::{Masks, Token, WordCell};

/// A value shared under the ceiling protocol.
pub trait Mutex {
    /// The type of the value.
    type T;

    /// Runs `f` with exclusive access to the value, at the resource's ceiling.
    ///
    /// Real-time safety: does not allocate. Enters the kernel only in two cases: if a job above
    /// this one has suspended itself, `lock` waits for it; and where the partition's word is
    /// biased, the first lock after an administrator has moved the thread to another CPU calls
    /// `membarrier(2)`.
    ///
    /// # Panics
    /// If `f` panics. The lock is released, but the value may be half changed, and it is not marked
    /// as such. So a panic that leaves `f` is a fault of the whole app, **even if the job catches
    /// it**: the app stops, and jobs that wait for the lock, or that the clock releases after the
    /// panic, never run. Jobs that have begun continue, and may still lock the value and see what
    /// `f` left; the same holds for `#[shutdown]`. To survive a panic, catch it inside `f`.
    fn lock<R>(&mut self, f: impl FnOnce(&mut Self::T) -> R) -> R;
}

/// A borrowed lock right: locks several resources together repeatedly, or each one alone.
///
/// ```
/// use punctual_core::Mutex;
/// use punctual_core::several::Lock2;
///
/// fn transfer(from: &mut impl Mutex<T = u32>, to: &mut impl Mutex<T = u32>) {
///     (&mut *from, &mut *to).lock(|from, to| {
///         *from -= 1;
///         *to += 1;
///     });
///     assert!(to.lock(|to| *to > 0));
/// }
/// ```
impl<M: Mutex> Mutex for &mut M {
    type T = M::T;

    #[inline(always)]
    fn lock<R>(&mut self, f: impl FnOnce(&mut M::T) -> R) -> R {
        (**self).lock(f)
    }
}

/// Storage for a resource: filled when the app starts, emptied when it has ended.
#[derive(Debug)]
pub struct Resource<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: access goes through `unsafe` methods, whose callers follow the ceiling protocol
// (exclusive access) or share the value between threads by reference, for which the macro requires
// `T: Sync`.
unsafe impl<T: Send> Sync for Resource<T> {}

impl<T> Resource<T> {
    /// Creates empty storage.
    #[cfg(not(loom))]
    #[expect(clippy::new_without_default, reason = "an empty resource is not a useful default value")]
    pub const fn new() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// Creates storage that already holds `value`.
    #[cfg(loom)]
    pub fn with_value(value: T) -> Self {
        Self(UnsafeCell::new(MaybeUninit::new(value)))
    }

    /// Fills the storage.
    ///
    /// # Safety
    /// No other thread uses it. A value already stored is leaked.
    pub unsafe fn fill(&self, value: T) {
        // SAFETY: no other thread uses the storage, by this function's contract.
        self.0.with_mut(|cell| unsafe { *cell = MaybeUninit::new(value) });
    }

    /// Drops the value.
    ///
    /// # Safety
    /// The storage is filled, no reference to the value exists, and it is filled again before its
    /// next use.
    pub unsafe fn empty(&self) {
        // SAFETY: the storage is filled and no reference to the value exists, by this function's
        // contract.
        self.0.with_mut(|cell| unsafe { (*cell).assume_init_drop() });
    }

    /// Returns exclusive access.
    ///
    /// # Safety
    /// The storage is filled, and no other reference to the value exists for the lifetime of this
    /// one.
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "exclusiveness comes from the ceiling protocol, see Safety")]
    pub unsafe fn get_mut(&self) -> &mut T {
        // SAFETY: the storage is filled and no other reference to the value exists, by this
        // function's contract.
        self.0.with_mut(|cell| unsafe { (*cell).assume_init_mut() })
    }

    /// Returns shared access.
    ///
    /// # Safety
    /// The storage is filled, and no exclusive reference to the value exists for the lifetime of
    /// this one. If other threads have shared access during this time, the type is `Sync`.
    #[inline(always)]
    pub unsafe fn get(&self) -> &T {
        // SAFETY: the storage is filled and no exclusive reference to the value exists, by this
        // function's contract.
        self.0.with(|cell| unsafe { (*cell).assume_init_ref() })
    }
}

/// The right of a job at `LEVEL` to lock a resource whose ceiling is `CEILING`.
///
/// Bound to the job's thread: it is neither `Send` nor `Sync`.
#[derive(Debug)]
pub struct Locked<'a, T, P: Port + 'static, const LEVEL: u8, const CEILING: u8> {
    resource: &'a Resource<T>,
    partition: &'static Partition<P>,
    worker: CurrentWorker,
    /// The thread's token for the word, if the ceiling is above the level.
    token: <P::Word as WordCell>::Token,
}

impl<'a, T, P: Port, const LEVEL: u8, const CEILING: u8> Locked<'a, T, P, LEVEL, CEILING> {
    /// Creates the lock right of one job.
    ///
    /// # Safety
    /// * `resource` is filled, and other users access it only through `Locked` of the same ceiling
    ///   and partition, or as tasks of the level `CEILING` while they run.
    /// * The calling thread runs a job of level `LEVEL` of `partition` for as long as the value is
    ///   used (`LEVEL` 0: it is the partition's idle thread and holds nothing).
    /// * The job creates at most one such value per resource.
    #[inline(always)]
    pub unsafe fn new(
        resource: &'a Resource<T>,
        partition: &'static Partition<P>,
        worker: CurrentWorker,
    ) -> Self {
        const { assert!(fits(LEVEL, CEILING), "a ceiling is a level, and not below that of any user") };
        let token = if LEVEL == CEILING { Token::NONE } else { partition.word_cell().token() };
        Self { resource, partition, worker, token }
    }
}

/// Returns `true` if a job of `level` may use a resource of that ceiling.
const fn fits(level: u8, ceiling: u8) -> bool {
    level <= ceiling && ceiling <= MAX_LEVEL
}

impl<T, P: Port, const LEVEL: u8, const CEILING: u8> Mutex for Locked<'_, T, P, LEVEL, CEILING> {
    type T = T;

    #[inline(always)]
    fn lock<R>(&mut self, f: impl FnOnce(&mut T) -> R) -> R {
        // The job's own level may suffice, or a ceiling it already holds; see `Partition`'s proof.
        // SAFETY: `new` has obtained the token on this thread, which `self` cannot leave.
        let raised = LEVEL != CEILING
            && unsafe {
                VariantOf::<P>::raise_at::<P, Section<LEVEL, CEILING>>(
                    self.partition,
                    self.worker,
                    self.token,
                )
            };
        let section =
            CriticalSection::<P, CEILING> { partition: self.partition, worker: self.worker, raised };
        // SAFETY: this thread occupies a level at or above the ceiling until `section` or its job
        // ends, so no other thread has access (see the proof with `Partition`). Within this thread
        // `&mut self` is borrowed, and the job has only one.
        let result = f(unsafe { self.resource.get_mut() });
        let token = self.token;
        // SAFETY: as above.
        section.end(|partition, worker| unsafe {
            VariantOf::<P>::lower_at::<P, Section<LEVEL, CEILING>>(partition, worker, token);
        });
        result
    }
}

/// The masks of a critical section of a job at `LEVEL`.
struct Section<const LEVEL: u8, const CEILING: u8>;

impl<const LEVEL: u8, const CEILING: u8> Masks for Section<LEVEL, CEILING> {
    // Level 0 has no bit: a resource of `idle` alone, whose ceiling is 0, never raises the level.
    const BIT: u32 = if CEILING == 0 { 0 } else { bit(CEILING) };
    // Rule *Raise* of the proof with `Partition`. The job occupies `LEVEL`, so if no level above
    // `LEVEL` is occupied, the job's own level is `LEVEL`, and it is the partition's.
    const BLOCKERS: u64 = Word::occupied_above(LEVEL);
    // `LEVEL` remains occupied, so only levels above it can start.
    const WORK: u64 = Word::work_above(LEVEL);
}

/// A critical section whose level is raised or already high enough. Callers end it explicitly;
/// dropping it means unwinding out of it.
struct CriticalSection<P: Port + 'static, const CEILING: u8> {
    partition: &'static Partition<P>,
    worker: CurrentWorker,
    raised: bool,
}

impl<P: Port, const CEILING: u8> CriticalSection<P, CEILING> {
    /// Ends the section: if it raised the level, `lower` lowers it again.
    #[inline(always)]
    fn end(self, lower: impl FnOnce(&'static Partition<P>, CurrentWorker)) {
        let Self { partition, worker, raised } = *ManuallyDrop::new(self);
        if raised {
            lower(partition, worker);
        }
    }
}

impl<P: Port, const CEILING: u8> Drop for CriticalSection<P, CEILING> {
    #[cold]
    fn drop(&mut self) {
        match self.raised {
            true => self.partition.unwind(self.worker, CEILING),
            false => self.partition.port().unwinds(),
        }
    }
}

impl<P: Port> Partition<P> {
    /// Runs `f` with the partition at its top level, so that no other job of it starts in the
    /// meantime: for critical sections that other partitions wait for.
    ///
    /// Real-time safety: as [`Mutex::lock`].
    #[inline]
    pub fn at_top_level<R>(&'static self, me: CurrentWorker, f: impl FnOnce() -> R) -> R {
        let raised = self.raise_if_below(me, MAX_LEVEL);
        let section = CriticalSection::<P, MAX_LEVEL> { partition: self, worker: me, raised };
        let result = f();
        section.end(|partition, worker| partition.lower(worker, MAX_LEVEL));
        result
    }
}

macro_rules! lock_several {
    ($($name:ident: $($resource:ident $index:tt),+);+ $(;)?) => {
        /// Locks several resources in one closure: `(a, b).lock(|a, b| …)`.
        pub mod several {
            use super::Mutex;
            $(
                #[doc = concat!("Locks a tuple of ", stringify!($name), " resources, in the order given.")]
                pub trait $name {
                    $(#[doc = "The type of one of the values."] type $resource;)+

                    /// Runs `f` with exclusive access to every value.
                    fn lock<R>(&mut self, f: impl FnOnce($(&mut Self::$resource),+) -> R) -> R;
                }

                impl<$($resource: Mutex),+> $name for ($($resource,)+) {
                    $(type $resource = $resource::T;)+

                    #[inline(always)]
                    fn lock<R>(&mut self, f: impl FnOnce($(&mut Self::$resource),+) -> R) -> R {
                        lock_several!(@nest self f [$($resource $index)+] [])
                    }
                }
            )+
        }
    };
    (@nest $self:ident $f:ident [] [$($value:ident)+]) => { $f($($value),+) };
    (@nest $self:ident $f:ident [$first:ident $index:tt $($rest:tt)*] [$($value:ident)*]) => {
        $self.$index.lock(#[allow(non_snake_case)] |$first| {
            lock_several!(@nest $self $f [$($rest)*] [$($value)* $first])
        })
    };
}

lock_several! {
    Lock2: A 0, B 1;
    Lock3: A 0, B 1, C 2;
    Lock4: A 0, B 1, C 2, D 3;
    Lock5: A 0, B 1, C 2, D 3, E 4;
    Lock6: A 0, B 1, C 2, D 3, E 4, F 5;
    Lock7: A 0, B 1, C 2, D 3, E 4, F 5, G 6;
    Lock8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7;
    Lock9: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8;
    Lock10: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9;
    Lock11: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10;
    Lock12: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11;
    Lock13: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12;
    Lock14: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13;
    Lock15: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14;
    Lock16: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15;
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(not(loom))]
    use crate::atomic::{AtomicU64, Ordering};
    #[cfg(not(loom))]
    use crate::word_cell::{Setting, WordCell};

    #[test]
    fn ceiling_is_not_below_users() {
        assert_eq!(
            [(0, 0), (3, 3), (3, 4), (4, 3), (5, 3)].map(|(l, c)| fits(l, c)),
            [true, true, true, false, false]
        );
        assert_eq!([28, 29].map(|ceiling| fits(1, ceiling)), [true, false]);
    }

    /// Level 2 runs in parallel to a job of level 1, as it can without real-time priorities. It is
    /// below the ceiling, but its job may use the resource as well.
    #[cfg(not(loom))]
    #[test]
    fn does_not_raise_past_occupied_level() {
        // SAFETY: the cell needs no token.
        let set_unless = |cell: &AtomicU64| unsafe { cell.set_unless::<Section<1, 3>>(()) } == Setting::Set;
        let job = Word::EMPTY.occupy(1);
        for other in [2, 3, 4] {
            let cell = AtomicU64::new(job.occupy(other).raw());
            assert!(!set_unless(&cell), "level {other} is occupied");
            assert_eq!(Word::from_raw(cell.load(Ordering::Relaxed)), job.occupy(other));
        }
        let cell = AtomicU64::new(job.mark_ready(2).raw());
        assert!(set_unless(&cell), "no other level is occupied");
        assert_eq!(Word::from_raw(cell.load(Ordering::Relaxed)), job.mark_ready(2).occupy(3));
    }

    /// The masks of a section are evaluated even if the section never raises the level.
    #[test]
    fn resource_of_idle_alone_has_no_bit() {
        assert_eq!(Section::<0, 0>::BIT, 0);
    }
}
