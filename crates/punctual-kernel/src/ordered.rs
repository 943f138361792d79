//! Mutexes that are locked in one order only, so that threads cannot deadlock.

use core::mem;
use core::ptr;

use core::cell::Cell;
use core::ops::{Deref, DerefMut};

use crate::kernel::Section;
use crate::{LockError, Mutex, MutexGuard, Port, RawMutex};

/// A group of mutexes whose orders are compared.
#[derive(Debug)]
pub struct Group {
    // Ensures that two groups have different addresses.
    _place: u8,
}

impl Group {
    /// Creates a group without mutexes.
    #[allow(clippy::new_without_default, reason = "a group is a static with its own identity")]
    pub const fn new() -> Self {
        Self { _place: 0 }
    }
}

/// A mutex's position in the order.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    group: &'static Group,
    order: u32,
}

impl Place {
    fn key(self) -> (usize, u32) {
        (ptr::from_ref(self.group).addr(), self.order)
    }
}

/// A [`Mutex`] of a [`Group`]. A thread may lock only mutexes that come later in the order than
/// those it holds.
///
/// If that is impractical, [`and_lock`](OrderedGuards::and_lock) releases the later mutexes, locks,
/// and takes them again; and [`lock_all`] locks several in their order, regardless of the order of
/// the arguments.
///
/// # Examples
///
#[cfg_attr(not(feature = "sim"), doc = "```ignore")]
#[cfg_attr(feature = "sim", doc = "```")]
/// # mod guide { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/guide.rs")); }
/// # use guide::*;
/// # use punctual_kernel::{Exclusion, Group, LockError, OrderedGuards, lock_all};
/// # static STACK: Stack = Stack::new();
/// static DEVICES: Group = Group::new();
/// static PRINTER: OrderedMutex<u32> = OrderedMutex::new(&DEVICES, 1, "printer", 0);
/// static COPIER: OrderedMutex<u32> = OrderedMutex::new(&DEVICES, 2, "copier", 0);
///
/// # sim::run(|| {
/// # Thread::spawn(5, &STACK, |()| {
/// let (mut copier, mut printer) = lock_all((&COPIER, &PRINTER)).unwrap();
/// *copier += 1;
/// *printer += 1;
/// drop((copier, printer));
///
/// // `and_lock` consumes the guard, because it may have to release the mutex.
/// let copier = COPIER.lock().unwrap();
/// let copies = *copier;
/// let ((copier, printer), exclusion) = copier.and_lock(&PRINTER).unwrap();
/// match exclusion {
///     Exclusion::Kept => unreachable!("the printer comes before the copier"),
///     Exclusion::Regained => assert_eq!(*copier, copies), // released and reacquired, without another owner
///     Exclusion::Lost => {}                               // another thread owned it: check again
/// }
/// drop(printer);
///
/// // A direct lock out of order is an error.
/// assert_eq!(PRINTER.lock().err(), Some(LockError::OutOfOrder("copier")));
/// # }, ()).unwrap();
/// # Kernel::run();
/// # });
/// ```
pub struct OrderedMutex<P: Port, T> {
    mutex: Mutex<P, T>,
    /// The number of times it has been locked. Written by the holder.
    times: Cell<u32>,
}

// SAFETY: as for `Mutex`; only the thread that holds the mutex accesses `times`.
unsafe impl<P: Port, T: Send> Sync for OrderedMutex<P, T> {}

impl<P: Port, T> OrderedMutex<P, T> {
    /// Creates an unlocked mutex at this position of the order. Errors refer to it by its name.
    pub const fn new(group: &'static Group, order: u32, name: &'static str, data: T) -> Self {
        Self { mutex: Mutex::placed(name, Place { group, order }, data), times: Cell::new(0) }
    }

    /// Locks the mutex, waiting while another thread holds it, until the guard is dropped.
    ///
    /// # Errors
    /// As for [`RawMutex::lock`], and [`LockError::OutOfOrder`] if the caller holds one of the
    /// group that is not earlier in the order.
    pub fn lock(&'static self) -> Result<OrderedGuard<P, T>, LockError> {
        lock_in_order(&self.mutex.raw)?;
        Ok(self.guard())
    }

    /// Returns the guard of a mutex that the caller has just locked.
    fn guard(&'static self) -> OrderedGuard<P, T> {
        self.times.set(self.times.get().wrapping_add(1));
        OrderedGuard { guard: MutexGuard::of_locked(&self.mutex), mutex: self }
    }
}

/// The data of a held [`OrderedMutex`].
#[must_use = "the mutex is unlocked at once"]
pub struct OrderedGuard<P: Port, T: 'static> {
    guard: MutexGuard<P, T>,
    mutex: &'static OrderedMutex<P, T>,
}

impl<P: Port, T> Deref for OrderedGuard<P, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<P: Port, T> DerefMut for OrderedGuard<P, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// The state of the data behind guards that were released to lock an earlier mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// None was released: the mutex comes later than all of them.
    Kept,
    /// Some were released and taken again, and no other thread held them in the meantime.
    Regained,
    /// Another thread held one in the meantime: values read before may be stale.
    Lost,
}

fn lock_in_order<P: Port>(mutex: &'static RawMutex<P>) -> Result<(), LockError> {
    check_order(mutex)?;
    mutex.lock()
}

/// Checks that all mutexes of the group that the caller holds come before `mutex`.
fn check_order<P: Port>(mutex: &'static RawMutex<P>) -> Result<(), LockError> {
    let section = Section::<P>::enter(&P::HOME);
    let (Some(me), Some(place)) = (section.blocker(), mutex.place) else {
        return Err(LockError::CannotBlock);
    };
    for held in me.all_held() {
        if ptr::eq(held, mutex) {
            return Err(LockError::Recursive(mutex.name()));
        }
        let is_late =
            held.place.is_some_and(|held| ptr::eq(held.group, place.group) && held.order >= place.order);
        if is_late {
            return Err(LockError::OutOfOrder(held.name()));
        }
    }
    Ok(())
}

/// Locks all in their order, or none.
fn lock_sorted<P: Port, const N: usize>(mutexes: [&'static RawMutex<P>; N]) -> Result<(), LockError> {
    let mut sorted = mutexes;
    // Every mutex here has a position.
    sorted.sort_unstable_by_key(|mutex| mutex.place.map(Place::key));
    for (i, mutex) in sorted.iter().enumerate() {
        if let Err(error) = lock_in_order(mutex) {
            unlock_all(&sorted[..i]);
            return Err(error);
        }
    }
    Ok(())
}

fn unlock_all<P: Port>(mutexes: &[&'static RawMutex<P>]) {
    for mutex in mutexes.iter().rev() {
        // The caller has locked them.
        let _ = mutex.unlock();
    }
}

/// Locks several mutexes, as an array or a tuple of two to four, and returns their guards in the
/// same order. They are locked in the order of their group.
///
/// # Errors
/// As for [`OrderedMutex::lock`]; then none is locked.
pub fn lock_all<M: OrderedMutexes>(mutexes: M) -> Result<M::Guards, LockError> {
    mutexes.lock_all()
}

/// Mutexes that [`lock_all`] locks.
pub trait OrderedMutexes: sealed::Sealed {
    /// Their guards, in the same order.
    type Guards;

    #[doc(hidden)]
    fn lock_all(self) -> Result<Self::Guards, LockError>;
}

/// Guards that can be released temporarily, to lock an earlier mutex: one, or a tuple of two or
/// three of them.
pub trait OrderedGuards<P: Port>: sealed::Sealed + Sized {
    /// The same guards, and that of one more mutex.
    type And<U: 'static>;

    /// Locks `other` as well, regardless of its position. Later mutexes are released and taken
    /// again, in their order. This is why it consumes the guards: references to the data have to be
    /// taken again, and [`Exclusion`] reports whether another thread may have changed it.
    ///
    /// # Errors
    /// As for [`OrderedMutex::lock`]; [`LockError::OutOfOrder`] if the caller holds a mutex that is
    /// later than `other` and not among these. Then all guards are dropped.
    fn and_lock<U: Send + 'static>(
        self,
        other: &'static OrderedMutex<P, U>,
    ) -> Result<(Self::And<U>, Exclusion), LockError>;
}

mod sealed {
    pub trait Sealed {}
}

impl<P: Port, T: Send, const N: usize> sealed::Sealed for [&'static OrderedMutex<P, T>; N] {}

impl<P: Port, T: Send + 'static, const N: usize> OrderedMutexes for [&'static OrderedMutex<P, T>; N] {
    type Guards = [OrderedGuard<P, T>; N];

    fn lock_all(self) -> Result<Self::Guards, LockError> {
        lock_sorted(self.map(|mutex| &mutex.mutex.raw))?;
        Ok(self.map(OrderedMutex::guard))
    }
}

/// Locks `other` together with `mine`, which the caller holds; later ones of its group are released
/// and taken again. Returns `true` if there were none. On an error the caller holds none of them.
fn lock_beside<P: Port, const N: usize>(
    other: &'static RawMutex<P>,
    mut mine: [&'static RawMutex<P>; N],
) -> Result<bool, LockError> {
    let comes_later = |mutex: &&'static RawMutex<P>| match (mutex.place, other.place) {
        (Some(mine), Some(other)) => ptr::eq(mine.group, other.group) && mine.order > other.order,
        _ => false,
    };
    // Those that stay locked first, and the others in their order.
    mine.sort_unstable_by_key(|mutex| (comes_later(mutex), mutex.place.map(Place::key)));
    let (still_locked, released) = mine.split_at(mine.iter().take_while(|mutex| !comes_later(mutex)).count());
    unlock_all(released);
    let mut locked = 0;
    let outcome = lock_in_order(other).and_then(|()| {
        released.iter().try_for_each(|mutex| {
            locked += 1;
            lock_in_order(mutex)
        })
    });
    if let Err(error) = outcome {
        if locked > 0 {
            unlock_all(&released[..locked - 1]);
            unlock_all(&[other]);
        }
        unlock_all(still_locked);
        return Err(error);
    }
    Ok(released.is_empty())
}

fn exclusion(is_uninterrupted: bool, is_same: bool) -> Exclusion {
    match (is_uninterrupted, is_same) {
        (true, _) => Exclusion::Kept,
        (false, true) => Exclusion::Regained,
        (false, false) => Exclusion::Lost,
    }
}

impl<P: Port, T> sealed::Sealed for OrderedGuard<P, T> {}

impl<P: Port, T: Send> OrderedGuards<P> for OrderedGuard<P, T> {
    type And<U: 'static> = (Self, OrderedGuard<P, U>);

    fn and_lock<U: Send + 'static>(
        self,
        other: &'static OrderedMutex<P, U>,
    ) -> Result<(Self::And<U>, Exclusion), LockError> {
        let mutex = self.mutex;
        let before = mutex.times.get();
        // From here on the guard is created again, or not at all.
        mem::forget(self);
        let is_uninterrupted = lock_beside(&other.mutex.raw, [&mutex.mutex.raw])?;
        let is_same = mutex.times.get() == before;
        Ok(((mutex.guard(), other.guard()), exclusion(is_uninterrupted, is_same)))
    }
}

macro_rules! tuples {
    ($($T:ident $field:tt),+) => {
        impl<P: Port, $($T),+> sealed::Sealed for ($(&'static OrderedMutex<P, $T>,)+) {}

        impl<P: Port, $($T: Send + 'static),+> OrderedMutexes for ($(&'static OrderedMutex<P, $T>,)+) {
            type Guards = ($(OrderedGuard<P, $T>,)+);

            fn lock_all(self) -> Result<Self::Guards, LockError> {
                lock_sorted([$(&self.$field.mutex.raw),+])?;
                Ok(($(self.$field.guard(),)+))
            }
        }
    };
}

tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);

macro_rules! tuples_of_guards {
    ($($T:ident $field:tt),+) => {
        impl<P: Port, $($T),+> sealed::Sealed for ($(OrderedGuard<P, $T>,)+) {}

        impl<P: Port, $($T: Send),+> OrderedGuards<P> for ($(OrderedGuard<P, $T>,)+) {
            type And<U: 'static> = ($(OrderedGuard<P, $T>,)+ OrderedGuard<P, U>);

            fn and_lock<U: Send + 'static>(
                self,
                other: &'static OrderedMutex<P, U>,
            ) -> Result<(Self::And<U>, Exclusion), LockError> {
                let mutexes = ($(self.$field.mutex,)+);
                let before = [$(mutexes.$field.times.get()),+];
                // From here on the guards are created again, or not at all.
                mem::forget(self);
                let is_uninterrupted = lock_beside(&other.mutex.raw, [$(&mutexes.$field.mutex.raw),+])?;
                let is_same = before == [$(mutexes.$field.times.get()),+];
                Ok((($(mutexes.$field.guard(),)+ other.guard()), exclusion(is_uninterrupted, is_same)))
            }
        }
    };
}

tuples_of_guards!(A 0, B 1);
tuples_of_guards!(A 0, B 1, C 2);
