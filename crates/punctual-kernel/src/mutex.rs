//! Mutexes with priority inheritance.

use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::ptr;

use crate::kernel::{Kernel, Section};
use crate::ordered::Place;
use crate::rank::Rank;
use crate::ready::Ready;
use crate::slot::{State, ThreadSlot, Wake};
use crate::wait_queue::WaitQueue;
use crate::{LockError, Port, UnlockError};

/// A mutex that protects no data, locked and unlocked by calls. Prefer [`Mutex`].
///
/// Threads wait in the order of their priorities. While a thread waits, the holder of the mutex has
/// at least its priority, and if the holder waits for another mutex itself, so has that mutex's
/// holder. A thread whose priority is raised goes behind those of that priority; one whose priority
/// is lowered goes before them.
pub struct RawMutex<P: Port> {
    owner: Cell<Option<&'static ThreadSlot<P>>>,
    /// The owner has ended.
    is_abandoned: Cell<bool>,
    waiters: WaitQueue<P>,
    /// The mutex that its owner holds and has locked before this.
    next_held: Cell<Option<&'static RawMutex<P>>>,
    name: &'static str,
    pub(crate) place: Option<Place>,
    home: P::Home,
}

// SAFETY: accessed with interrupts masked, on the one core or thread that the port lets in (see
// `Port`).
unsafe impl<P: Port> Sync for RawMutex<P> {}

impl<P: Port> RawMutex<P> {
    /// Creates an unlocked mutex. Errors refer to it by its name.
    pub const fn new(name: &'static str) -> Self {
        Self::placed(name, None)
    }

    pub(crate) const fn placed(name: &'static str, place: Option<Place>) -> Self {
        Self {
            owner: Cell::new(None),
            is_abandoned: Cell::new(false),
            waiters: WaitQueue::new(),
            next_held: Cell::new(None),
            name,
            place,
            home: P::HOME,
        }
    }

    /// Returns the mutex's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Locks the mutex, waiting while another thread holds it.
    ///
    /// # Errors
    /// Every variant of [`LockError`] except `OutOfOrder` and `WouldBlock`.
    #[inline]
    pub fn lock(&'static self) -> Result<(), LockError> {
        let section = Section::enter(&self.home);
        let me = section.blocker().ok_or(LockError::CannotBlock)?;
        if self.owner.get().is_none() {
            self.give(me);
            return Ok(());
        }
        self.contend(&section, me)
    }

    /// Locks the mutex if it is free.
    ///
    /// # Errors
    /// Every variant of [`LockError`] except `OutOfOrder` and `Deadlock`.
    pub fn try_lock(&'static self) -> Result<(), LockError> {
        let section = Section::enter(&self.home);
        let me = section.blocker().ok_or(LockError::CannotBlock)?;
        let Some(owner) = self.owner.get() else {
            self.give(me);
            return Ok(());
        };
        self.check(me, owner)?;
        Err(LockError::WouldBlock(self.name))
    }

    /// Unlocks the mutex. The first waiting thread gets it, and runs at once if it precedes the
    /// caller then.
    ///
    /// # Errors
    /// If the caller does not hold it. Then nothing is changed.
    #[inline]
    pub fn unlock(&'static self) -> Result<(), UnlockError> {
        let section = Section::enter(&self.home);
        let me = section.kernel.current().ok_or(UnlockError::NotOwner(self.name))?;
        // A thread that has the mutex in its list holds it.
        if me.held.get().is_some_and(|last| ptr::eq(last, self)) {
            me.held.set(self.next_held.get());
        } else {
            self.unlink_held(me)?;
        }
        let Some(first) = self.waiters.first() else {
            self.owner.set(None);
            return Ok(());
        };
        self.hand_over(&section, me, first);
        Ok(())
    }

    /// Makes a mutex usable again whose owner has ended. Returns `true` if it had; the protected
    /// data may be half changed.
    pub fn recover(&'static self) -> bool {
        let _section = Section::<P>::enter(&self.home);
        let was = self.is_abandoned.take();
        if was {
            self.owner.set(None);
        }
        was
    }

    #[inline]
    fn give(&'static self, to: &'static ThreadSlot<P>) {
        self.owner.set(Some(to));
        self.next_held.set(to.held.get());
        to.held.set(Some(self));
    }

    fn check(&self, me: &ThreadSlot<P>, owner: &ThreadSlot<P>) -> Result<(), LockError> {
        // First: another thread may have the owner's slot by now.
        if self.is_abandoned.get() {
            Err(LockError::OwnerEnded(self.name))
        } else if owner.is(me) {
            Err(LockError::Recursive(self.name))
        } else {
            Ok(())
        }
    }

    /// Waits for the owner, which inherits the priority. Takes a step for each thread in the chain
    /// of waiters, twice.
    #[cold]
    #[inline(never)]
    fn contend(&'static self, section: &Section<P>, me: &'static ThreadSlot<P>) -> Result<(), LockError> {
        let Some(owner) = self.owner.get() else { unreachable!("checked by the caller") };
        self.check(me, owner)?;
        let mut at = owner;
        while let Some(next) = at.waiting_for.get().and_then(|mutex| mutex.owner.get()) {
            if next.is(me) {
                return Err(LockError::Deadlock(self.name));
            }
            at = next;
        }
        let kernel = section.kernel;
        kernel.ready.remove(me);
        me.waiting_for.set(Some(self));
        self.waiters.insert(me);
        kernel.inherit(owner, me.rank.get());
        match kernel.suspend(me, State::Locking, None) {
            Wake::OwnerEnded => Err(LockError::OwnerEnded(self.name)),
            Wake::Granted | Wake::TimedOut => Ok(()),
        }
    }

    #[cold]
    #[inline(never)]
    fn hand_over(
        &'static self,
        section: &Section<P>,
        me: &'static ThreadSlot<P>,
        to: &'static ThreadSlot<P>,
    ) {
        let kernel = section.kernel;
        self.waiters.remove_first(to);
        to.waiting_for.set(None);
        self.give(to);
        let base = me.base.get();
        if !section.is_nested()
            && kernel.is_plain()
            && me.held.get().is_none()
            && to.rank.get() < base
            && Ready::is_alone(me)
        {
            // The common case: the caller holds no other mutex, so its priority is inherited from
            // the first waiter. The waiter takes the position of the caller, which is alone at that
            // priority, and so goes first now. It has no timeout, like every thread that waits for
            // a mutex.
            debug_assert_eq!(me.rank.get(), to.rank.get());
            to.wake.set(Wake::Granted);
            to.state.set(State::Ready);
            kernel.ready.replace(to.rank.get(), to);
            me.rank.set(base);
            kernel.ready.push_first(me);
            kernel.switch_plainly(me, to);
        } else {
            kernel.wake(to, Wake::Granted);
            kernel.set_rank(me, me.inherited());
            section.reschedule();
        }
    }

    /// Removes the mutex from the list of those a thread holds, if it is there, behind others that
    /// were locked later.
    #[cold]
    fn unlink_held(&'static self, me: &'static ThreadSlot<P>) -> Result<(), UnlockError> {
        let mut at = me.held.get();
        while let Some(mutex) = at {
            let next = mutex.next_held.get();
            if next.is_some_and(|next| ptr::eq(next, self)) {
                mutex.next_held.set(self.next_held.get());
                return Ok(());
            }
            at = next;
        }
        Err(UnlockError::NotOwner(self.name))
    }

    /// Abandons the mutex of a thread that ends. Returns the next mutex that it holds.
    pub(crate) fn abandon(&'static self, kernel: &'static Kernel<P>) -> Option<&'static Self> {
        self.is_abandoned.set(true);
        while let Some(waiter) = self.waiters.first() {
            self.waiters.remove_first(waiter);
            waiter.waiting_for.set(None);
            kernel.wake(waiter, Wake::OwnerEnded);
        }
        self.next_held.get()
    }
}

impl<P: Port> ThreadSlot<P> {
    /// Returns the highest of its own priority and those of the threads that wait for its mutexes.
    /// Takes a step for each mutex held.
    fn inherited(&self) -> Rank {
        let mut rank = self.base.get();
        let mut at = self.held.get();
        while let Some(mutex) = at {
            if let Some(first) = mutex.waiters.first() {
                rank = rank.min(first.rank.get());
            }
            at = mutex.next_held.get();
        }
        rank
    }

    /// Returns the held mutexes, the last locked first.
    pub(crate) fn all_held(&self) -> impl Iterator<Item = &'static RawMutex<P>> {
        core::iter::successors(self.held.get(), |mutex| mutex.next_held.get())
    }
}

impl<P: Port> Kernel<P> {
    /// Raises the priority of a thread with waiters, and of the threads that it waits for in turn,
    /// to at least this one.
    fn inherit(&'static self, from: &'static ThreadSlot<P>, rank: Rank) {
        let mut at = Some(from);
        while let Some(thread) = at.filter(|thread| thread.rank.get() > rank) {
            self.set_rank(thread, rank);
            at = thread.waiting_for.get().and_then(|mutex| mutex.owner.get());
        }
    }

    /// Changes a thread's priority, and its position in every queue.
    fn set_rank(&'static self, thread: &'static ThreadSlot<P>, rank: Rank) {
        let before = thread.rank.get();
        if rank == before {
            // It keeps its position.
            return;
        }
        if let Some(queue) = thread.queue.get() {
            queue.remove(thread);
            thread.rank.set(rank);
            queue.insert(thread);
        } else if thread.state.get() == State::Ready {
            self.ready.remove(thread);
            thread.rank.set(rank);
            if rank > before {
                self.ready.push_first(thread);
            } else {
                self.ready.push_last(thread);
            }
        } else {
            thread.rank.set(rank);
        }
    }
}

/// Data that one thread at a time uses. See [`RawMutex`] for the order of waiters and priority
/// inheritance.
///
/// # Examples
///
#[cfg_attr(not(feature = "sim"), doc = "```ignore")]
#[cfg_attr(feature = "sim", doc = "```")]
/// # mod guide { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/guide.rs")); }
/// # use guide::*;
/// # use punctual_kernel::LockError;
/// # static STACK: Stack = Stack::new();
/// static POSITION: Mutex<[f32; 2]> = Mutex::new("position", [0.0; 2]);
///
/// # sim::run(|| {
/// # Thread::spawn(5, &STACK, |()| {
/// let mut position = POSITION.lock().unwrap();
/// position[0] += 1.5;
/// assert_eq!(POSITION.lock().unwrap_err(), LockError::Recursive("position"));
/// drop(position);
/// # }, ()).unwrap();
/// # Kernel::run();
/// # });
/// ```
pub struct Mutex<P: Port, T> {
    pub(crate) raw: RawMutex<P>,
    data: UnsafeCell<T>,
}

// SAFETY: `raw` admits one thread at a time to the data, which thus moves from thread to thread.
unsafe impl<P: Port, T: Send> Sync for Mutex<P, T> {}

impl<P: Port, T> Mutex<P, T> {
    /// Creates an unlocked mutex. Errors refer to it by its name.
    pub const fn new(name: &'static str, data: T) -> Self {
        Self { raw: RawMutex::new(name), data: UnsafeCell::new(data) }
    }

    pub(crate) const fn placed(name: &'static str, place: Place, data: T) -> Self {
        Self { raw: RawMutex::placed(name, Some(place)), data: UnsafeCell::new(data) }
    }

    /// Locks the mutex, waiting while another thread holds it, until the guard is dropped.
    ///
    /// # Errors
    /// As for [`RawMutex::lock`].
    #[inline]
    pub fn lock(&'static self) -> Result<MutexGuard<P, T>, LockError> {
        self.raw.lock()?;
        Ok(MutexGuard::of_locked(self))
    }

    /// Locks the mutex if it is free.
    ///
    /// # Errors
    /// As for [`RawMutex::try_lock`].
    pub fn try_lock(&'static self) -> Result<MutexGuard<P, T>, LockError> {
        self.raw.try_lock()?;
        Ok(MutexGuard::of_locked(self))
    }

    /// Makes a mutex usable again whose owner has ended. Returns `true` if it had; the data may be
    /// half changed.
    ///
    /// # Safety
    /// References to the data that the owner obtained from its guard, which was never dropped, are
    /// no longer used.
    pub unsafe fn recover(&'static self) -> bool {
        self.raw.recover()
    }
}

/// The data of a held [`Mutex`]. Dropping it unlocks the mutex, on the thread that has locked it: a
/// guard cannot be sent to another.
#[must_use = "the mutex is unlocked at once"]
pub struct MutexGuard<P: Port, T: 'static> {
    mutex: &'static Mutex<P, T>,
    _of_one_thread: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives only shared access to the data.
unsafe impl<P: Port, T: Sync> Sync for MutexGuard<P, T> {}

impl<P: Port, T> MutexGuard<P, T> {
    /// Creates the guard of a mutex that the calling thread has locked and has no guard of.
    #[inline]
    pub(crate) fn of_locked(mutex: &'static Mutex<P, T>) -> Self {
        Self { mutex, _of_one_thread: PhantomData }
    }
}

impl<P: Port, T> Deref for MutexGuard<P, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the thread holds the mutex while the guard exists, and there is one guard.
        unsafe { &*self.mutex.data.get() }
    }
}

impl<P: Port, T> DerefMut for MutexGuard<P, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`.
        unsafe { &mut *self.mutex.data.get() }
    }
}

impl<P: Port, T> Drop for MutexGuard<P, T> {
    #[inline]
    fn drop(&mut self) {
        // Only an owner has a guard, so this does not fail.
        let _ = self.mutex.raw.unlock();
    }
}

impl<P: Port, T: fmt::Debug> fmt::Debug for MutexGuard<P, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}
