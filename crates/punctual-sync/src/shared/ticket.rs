//! A first-come, first-served spin lock with bounded waiting, for threads on different CPUs.
//!
//! ```
//! use punctual_sync::shared::TicketLock;
//!
//! static POSE: TicketLock<[f32; 3]> = TicketLock::new([0.0; 3]);
//!
//! POSE.try_lock().unwrap()[2] = 0.5;
//! let held = POSE.try_lock().unwrap();
//! assert!(POSE.try_lock().is_none());
//! assert!(POSE.lock_while(|| false).is_err());
//! assert_eq!(*held, [0.0, 0.0, 0.5]);
//! ```
//!
//! Waiting threads spin. On one CPU a high level would spin for a low one that it preempted, until
//! the bound: use a [PCP mutex](crate) between the levels of one CPU.
//!
//! The lock uses tickets with one slot per waiter to spin on (T. E. Anderson, "The Performance of
//! Spin Lock Alternatives for Shared-Memory Multiprocessors", TPDS 1(1), 1990, section IV-D). A
//! thread that gives up marks its slot as abandoned and leaves; the holder that reaches the mark
//! skips the slot (an idea of M. L. Scott, W. N. Scherer, "Scalable Queue-Based Spin Locks with
//! Timeout", PPoPP 2001, for queues of nodes).
//!
//! Real-time safety: nothing allocates. Taking a ticket is lock-free: an attempt is repeated only
//! if another thread took one. Waiting ends with its limit. Unlocking skips each mark once: `W` at
//! most, unless further threads give up in the meantime, each of which has spun through its bound.
//! The lock enters the kernel only in shared memory: a process identifies itself once; and a thread
//! that reaches its bound or finds no slot checks whether the holder's process is alive before it
//! gives up.
//!
//! # When a process dies
//!
//! A lock in shared memory records which process has each ticket, and which one passes the token
//! on. If one has died, at any instruction, the next thread that reaches its bound, or calls
//! [`TicketLock::recover`], passes the token on in its place. If the dead process held the lock,
//! the value may be half changed: then [`TicketLock::lock`] fails with
//! [`TicketLockError::OwnerDied`], for every thread and at once, until one gets the lock from
//! [`TicketLock::take_over`]; so no thread uses such a value unknowingly. Tickets of dead processes
//! that only waited are skipped.
//!
//! # Invariants
//!
//! *T1* There is one token. It is stored as `GRANTED` in the slot of the ticket `serving`, or is
//! held by the thread that wrote `serving` together with its peer number. A guard represents a
//! `GRANTED` slot that has an owner. *T2* A slot belongs to the ticket that it names, and to later
//! ones when that ticket is finished: its word alone records who has drawn a ticket, so drawing is
//! one step. *T3* `next` is a hint. All tickets before it have been drawn; some behind it may have
//! been, too. *T4* Only the holder of the token, or of a slot, changes its word, or a thread that
//! [recovers](TicketLock::recover) it from a dead process, one at a time. Peer numbers are reused
//! only when no word names them.

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use super::owner::{Claim, Peer, Peers};
use super::{Padded, TicketLockError};
use crate::atomic::{AtomicU32, AtomicU64, Ordering, UnsafeCell, relax};
#[cfg(feature = "std")]
use crate::{Duration, spin};

/// The content of a slot: in the upper 32 bits the ticket that it belongs to, then the state, and
/// the peer that has the ticket.
type Word = u64;

const EMPTY: u64 = 0;
const WAITING: u64 = 1 << 16;
const GRANTED: u64 = 2 << 16;
const ABANDONED: u64 = 3 << 16;
const STATE: u64 = 0xffff_0000;

const fn word(ticket: u32, state: u64, peer: Peer) -> Word {
    (ticket as u64) << 32 | state | peer as u64
}

const fn ticket(word: Word) -> u32 {
    (word >> 32) as u32
}

const fn state(word: Word) -> u64 {
    word & STATE
}

const fn peer(word: Word) -> Peer {
    (word & 0xffff) as Peer
}

const fn with_state(word: Word, state: u64) -> Word {
    word & !STATE | state
}

const fn is_possible(slots: usize) -> bool {
    slots.is_power_of_two() && slots <= 1 << 16
}

/// The current turn.
#[repr(C)]
struct Serving {
    /// The ticket being served, and the peer that passed the token to it. The state is not used.
    serving: AtomicU64,
    /// Set if the value may be half changed.
    is_spoilt: AtomicU32,
}

/// A value behind a ticket lock with slots for `W` threads, a power of two.
#[repr(C)]
pub struct TicketLock<T, const W: usize = 16> {
    next: Padded<AtomicU32>,
    turn: Padded<Serving>,
    slots: [Padded<AtomicU64>; W],
    /// Held by the thread that recovers from a death.
    recovery: Claim,
    peers: Peers,
    value: UnsafeCell<T>,
}

// SAFETY: by T1 one guard at a time accesses the value, and the token passes with release and
// acquire. Several threads use the value in turn: `T: Send`.
unsafe impl<T: Send, const W: usize> Sync for TicketLock<T, W> {}
// SAFETY: a lock owns its value.
unsafe impl<T: Send, const W: usize> Send for TicketLock<T, W> {}

impl<T> TicketLock<T> {
    crate::atomic::const_new! {
        /// Creates an unlocked lock with 16 slots.
        pub fn new(value: T) -> Self {
            Self::with_slots(value)
        }
    }
}

impl<T, const W: usize> TicketLock<T, W> {
    const CHECK: () = assert!(is_possible(W), "the number of slots is a power of two up to 2^16");

    /// Creates an unlocked lock.
    #[cfg(not(loom))]
    pub const fn with_slots(value: T) -> Self {
        let () = Self::CHECK;
        let mut slots = [const { Padded(AtomicU64::new(0)) }; W];
        let mut i = 0;
        while i < W {
            slots[i] = Padded(AtomicU64::new(Self::initial(i)));
            i += 1;
        }
        let turn = Padded(Serving { serving: AtomicU64::new(0), is_spoilt: AtomicU32::new(0) });
        let (recovery, peers) = (Claim::new(), Peers::new());
        Self { next: Padded(AtomicU32::new(0)), turn, slots, recovery, peers, value: UnsafeCell::new(value) }
    }

    /// Creates an unlocked lock.
    #[cfg(loom)]
    pub fn with_slots(value: T) -> Self {
        let () = Self::CHECK;
        let slots = core::array::from_fn(|i| Padded(AtomicU64::new(Self::initial(i))));
        let turn = Padded(Serving { serving: AtomicU64::new(0), is_spoilt: AtomicU32::new(0) });
        let (recovery, peers) = (Claim::new(), Peers::new());
        Self { next: Padded(AtomicU32::new(0)), turn, slots, recovery, peers, value: UnsafeCell::new(value) }
    }

    /// Returns the initial content of slot `index`: the token is in that of ticket 0.
    const fn initial(index: usize) -> Word {
        word(index as u32, if index == 0 { GRANTED } else { EMPTY }, 0)
    }

    /// Locks, spinning for at most `limit`; see [Spinning](crate#spinning). If a panic unwinds
    /// through the guard, it unlocks; the value is then as the panic left it.
    ///
    /// # Errors
    /// [`TicketLockError::TimedOut`] if the turn did not come, [`TicketLockError::Full`] if all `W`
    /// slots are in use, [`TicketLockError::OwnerDied`] if a process died while it held the lock.
    #[cfg(feature = "std")]
    #[inline]
    pub fn lock(&self, limit: Duration) -> Result<TicketGuard<'_, T, W>, TicketLockError> {
        self.lock_while(spin::within(limit))
    }

    /// Locks like `lock`, spinning while `go_on`, called before each check, returns `true`.
    ///
    /// # Errors
    /// Those of [`TicketLockError`].
    #[inline]
    pub fn lock_while(&self, go_on: impl FnMut() -> bool) -> Result<TicketGuard<'_, T, W>, TicketLockError> {
        self.checked(self.lock_anyway(go_on)?)
    }

    /// Locks if the lock is free, has no waiters, and no process died while it held the lock.
    pub fn try_lock(&self) -> Option<TicketGuard<'_, T, W>> {
        let me = self.me()?;
        self.draw_token(me).and_then(|guard| self.checked(guard).ok())
    }

    /// Takes the ticket that is being served, if it is free.
    #[inline]
    fn draw_token(&self, me: Peer) -> Option<TicketGuard<'_, T, W>> {
        // Relaxed: only determines which slot to check. If the token is there, the ticket is being
        // served.
        let ticket = ticket(self.turn.0.serving.load(Ordering::Relaxed));
        let (free, mine) = (word(ticket, GRANTED, 0), word(ticket, GRANTED, me));
        // Acquire: the token comes with the value.
        let exchange = self.slot(ticket).compare_exchange(free, mine, Ordering::Acquire, Ordering::Relaxed);
        exchange.ok()?;
        self.next.0.store(ticket.wrapping_add(1), Ordering::Relaxed);
        Some(self.guard(ticket, me))
    }

    /// Locks like `lock`, even if a process died while it held the lock: the caller repairs the
    /// value. From then on other threads can lock it again, unless the caller's process dies before
    /// it unlocks.
    ///
    /// # Errors
    /// [`TicketLockError::TimedOut`] if the turn did not come, [`TicketLockError::Full`] if all `W`
    /// slots are in use.
    #[cfg(feature = "std")]
    pub fn take_over(&self, limit: Duration) -> Result<TicketGuard<'_, T, W>, TicketLockError> {
        self.take_over_while(spin::within(limit))
    }

    /// Locks like `take_over`, spinning while `go_on`, called before each check, returns `true`.
    ///
    /// # Errors
    /// [`TicketLockError::TimedOut`] if the turn did not come, [`TicketLockError::Full`] if all `W`
    /// slots are in use.
    pub fn take_over_while(
        &self,
        go_on: impl FnMut() -> bool,
    ) -> Result<TicketGuard<'_, T, W>, TicketLockError> {
        let guard = self.lock_anyway(go_on)?;
        // Relaxed: only the holder of the token, or its recoverer, reads or writes this.
        self.turn.0.is_spoilt.store(0, Ordering::Relaxed);
        Ok(guard)
    }

    /// Passes the token on for dead processes, and skips their tickets. In shared memory, asks the
    /// kernel which processes are alive. `lock` does this itself before it fails; call it if you
    /// only use `try_lock`.
    #[cold]
    pub fn recover(&self) {
        if !self.peers.home().is_shared() {
            return;
        }
        let home = self.peers.home();
        // If a living process has the claim, recovery is left to that process.
        if self.recovery.take_over(home).is_ok() {
            let me = self.me().or_else(|| {
                self.forget_peers();
                self.me()
            });
            self.recover_token(me.unwrap_or(Peers::ANONYMOUS));
            self.recovery.give_back(home);
        }
    }

    /// Passes the token on until a living process has it, or none waits.
    fn recover_token(&self, me: Peer) {
        loop {
            let serving = self.turn.0.serving.load(Ordering::Relaxed);
            let now = ticket(serving);
            // Acquire: if the ticket is finished, `serving` is seen below to have advanced
            // (`finish`).
            let slot = self.slot(now).load(Ordering::Acquire);
            let is_granted = ticket(slot) == now && state(slot) == GRANTED;
            if !self.peers.has_died(if is_granted { peer(slot) } else { peer(serving) }) {
                return;
            }
            // The loaded values may be older than the death, which makes the last word final.
            // Relaxed: detecting the death orders these loads after all actions of the dead
            // process.
            let is_final = self.turn.0.serving.load(Ordering::Relaxed) == serving
                && (!is_granted || self.slot(now).load(Ordering::Relaxed) == slot);
            if !is_final {
                continue;
            }
            if is_granted {
                self.turn.0.is_spoilt.store(1, Ordering::Relaxed);
                self.pass_on(now, me);
            } else {
                self.turn.0.serving.store(word(now, 0, me), Ordering::Relaxed);
                self.finish(now.wrapping_sub(1));
                if !self.grant(now) {
                    self.pass_on(now, me);
                }
            }
        }
    }

    /// Frees the numbers of dead processes that no ticket names.
    fn forget_peers(&self) {
        for dead in self.peers.dead() {
            // Relaxed: only the dead process wrote its number into words, before it died.
            let number = dead.number;
            let is_named = self.slots.iter().any(|slot| peer(slot.0.load(Ordering::Relaxed)) == number);
            if !is_named && peer(self.turn.0.serving.load(Ordering::Relaxed)) != number {
                self.peers.forget(dead);
            }
        }
    }

    fn me(&self) -> Option<Peer> {
        self.peers.me(|| ())
    }

    #[inline]
    fn lock_anyway(&self, go_on: impl FnMut() -> bool) -> Result<TicketGuard<'_, T, W>, TicketLockError> {
        // An attempt that must fail would take the cache line from the holder of the lock.
        let serving = ticket(self.turn.0.serving.load(Ordering::Relaxed));
        if self.next.0.load(Ordering::Relaxed) == serving
            && let Some(me) = self.me()
            && let Some(guard) = self.draw_token(me)
        {
            return Ok(guard);
        }
        self.wait(go_on)
    }

    /// Draws a ticket and spins until it is its turn.
    fn wait(&self, mut go_on: impl FnMut() -> bool) -> Result<TicketGuard<'_, T, W>, TicketLockError> {
        let draw = || self.me().ok_or(TicketLockError::Full).and_then(|me| self.draw(me));
        let (ticket, me) = match draw() {
            Err(_) if self.peers.home().is_shared() => {
                self.recover();
                draw()?
            }
            drawn => drawn?,
        };
        let slot = self.slot(ticket);
        let has_token = || state(slot.load(Ordering::Acquire)) == GRANTED;
        let unwinding = LeaveOnUnwind { lock: self, ticket, me };
        while go_on() {
            if has_token() {
                core::mem::forget(unwinding);
                return Ok(self.guard(ticket, me));
            }
            relax();
        }
        core::mem::forget(unwinding);
        if self.peers.home().is_shared() && !has_token() {
            self.recover();
        }
        self.leave(ticket, me)
    }

    /// Abandons a ticket, unless its turn has come.
    fn leave(&self, ticket: u32, me: Peer) -> Result<TicketGuard<'_, T, W>, TicketLockError> {
        let slot = self.slot(ticket);
        let (waiting, abandoned) = (word(ticket, WAITING, me), word(ticket, ABANDONED, me));
        // Acquire on failure: the token came at the last moment, with the value.
        match slot.compare_exchange(waiting, abandoned, Ordering::Relaxed, Ordering::Acquire) {
            Ok(_) => Err(TicketLockError::TimedOut),
            Err(_) => Ok(self.guard(ticket, me)),
        }
    }

    /// Takes the next ticket.
    #[inline]
    fn draw(&self, me: Peer) -> Result<(u32, Peer), TicketLockError> {
        let mut next = self.next.0.load(Ordering::Relaxed);
        loop {
            let slot = self.slot(next);
            let seen = slot.load(Ordering::Relaxed);
            // Compared by their distance, so that tickets may wrap.
            let ahead = ticket(seen).wrapping_sub(next);
            if ahead != 0 {
                if ahead > u32::MAX / 2 {
                    // The slot belongs to a ticket that is not finished.
                    return Err(TicketLockError::Full);
                }
                // The hint is stale: everything up to the slot's last ticket is finished.
                next = ticket(seen).wrapping_sub(W as u32).wrapping_add(1);
                continue;
            }
            let drawn = match state(seen) {
                EMPTY => word(next, WAITING, me),
                GRANTED if peer(seen) == 0 => word(next, GRANTED, me),
                _ => {
                    next = next.wrapping_add(1);
                    continue;
                }
            };
            // Relaxed: a thread that has drawn the ticket checks the slot again, with acquire,
            // before it takes the token.
            if slot.compare_exchange(seen, drawn, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                self.next.0.store(next.wrapping_add(1), Ordering::Relaxed);
                return Ok((next, me));
            }
        }
    }

    /// Passes the token of `ticket` on: to the next one that was not abandoned.
    #[inline]
    fn pass_on(&self, mut ticket: u32, me: Peer) {
        loop {
            let next = ticket.wrapping_add(1);
            // From here on this thread holds the token.
            self.turn.0.serving.store(word(next, 0, me), Ordering::Relaxed);
            self.finish(ticket);
            if self.grant(next) {
                return;
            }
            ticket = next;
        }
    }

    /// Releases the slot of the `finished` ticket to later ones, unless that was done.
    #[inline]
    fn finish(&self, finished: u32) {
        let slot = self.slot(finished);
        // Relaxed: the slot was last changed by the holder of the token, or before the token came.
        if ticket(slot.load(Ordering::Relaxed)) == finished {
            // Release: after `serving` has been written. Otherwise the token could seem to have no
            // holder.
            slot.store(word(finished.wrapping_add(W as u32), EMPTY, 0), Ordering::Release);
        }
    }

    /// Puts the token into the slot of `ticket`, unless that was abandoned. Returns `true` if it
    /// did.
    #[inline]
    fn grant(&self, ticket: u32) -> bool {
        let slot = self.slot(ticket);
        let mut seen = slot.load(Ordering::Relaxed);
        while state(seen) != ABANDONED {
            let granted = with_state(seen, GRANTED);
            // Release: the token passes with the value.
            match slot.compare_exchange(seen, granted, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Returns the number of tickets that have been drawn and are not finished at this moment.
    pub(crate) fn tickets(&self) -> u32 {
        let first = ticket(self.turn.0.serving.load(Ordering::Relaxed));
        let is_drawn = |&ahead: &u32| {
            let ticket = first.wrapping_add(ahead);
            let seen = self.slot(ticket).load(Ordering::Relaxed);
            seen >> 32 == u64::from(ticket) && peer(seen) != 0
        };
        (0..W as u32).take_while(is_drawn).count() as u32
    }

    fn slot(&self, ticket: u32) -> &AtomicU64 {
        &self.slots[ticket as usize % W].0
    }

    /// Creates the guard for `ticket`, whose token the caller has received.
    fn guard(&self, ticket: u32, me: Peer) -> TicketGuard<'_, T, W> {
        TicketGuard { lock: self, granted: word(ticket, GRANTED, me), value: PhantomData }
    }

    /// Rejects the guard if the value may be half changed.
    #[inline]
    fn checked<'a>(&self, guard: TicketGuard<'a, T, W>) -> Result<TicketGuard<'a, T, W>, TicketLockError> {
        // Relaxed: only the holder of the token writes it, and the token came with it.
        match self.turn.0.is_spoilt.load(Ordering::Relaxed) {
            0 => Ok(guard),
            _ => Err(TicketLockError::OwnerDied),
        }
    }
}

/// Abandons a ticket when dropped: while a panic of the caller's `go_on` unwinds.
struct LeaveOnUnwind<'a, T, const W: usize> {
    lock: &'a TicketLock<T, W>,
    ticket: u32,
    me: Peer,
}

impl<T, const W: usize> Drop for LeaveOnUnwind<'_, T, W> {
    #[cold]
    fn drop(&mut self) {
        drop(self.lock.leave(self.ticket, self.me));
    }
}

impl<T, const W: usize> fmt::Debug for TicketLock<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketLock").field("tickets", &self.tickets()).finish_non_exhaustive()
    }
}

/// The right to use a [`TicketLock`]'s value. Dropping it unlocks.
#[must_use]
pub struct TicketGuard<'a, T, const W: usize = 16> {
    lock: &'a TicketLock<T, W>,
    /// The content of its slot, as one word: two half words written separately and read together
    /// would stall on store forwarding.
    granted: Word,
    /// A guard may be shared only if the value may.
    value: PhantomData<&'a mut T>,
}

impl<T, const W: usize> Deref for TicketGuard<'_, T, W> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: by T1 this guard is the only one, and it is borrowed.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<T, const W: usize> DerefMut for TicketGuard<'_, T, W> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: by T1 this guard is the only one, and it is borrowed mutably.
        self.lock.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T, const W: usize> Drop for TicketGuard<'_, T, W> {
    fn drop(&mut self) {
        let (ticket, me) = (ticket(self.granted), peer(self.granted));
        if self.lock.peers.is_own(me) {
            self.lock.pass_on(ticket, me);
        }
    }
}

impl<T: fmt::Debug, const W: usize> fmt::Debug for TicketGuard<'_, T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TicketGuard").field(&**self).finish()
    }
}

// SAFETY: `repr(C)` without pointers, and `T` has none. `write` sets all nonzero fields. To T1–T4,
// which rely on atomics only, two processes are two threads.
#[cfg(not(loom))]
unsafe impl<T: super::Plain, const W: usize> super::Shareable for TicketLock<T, W> {
    const KIND: u32 = 5;
    const CAPACITY: usize = W;
    type Element = T;
    type Init = T;

    unsafe fn write(this: *mut Self, value: T) {
        let () = Self::CHECK;
        // SAFETY: `this` is valid for writes by the contract of this function.
        unsafe {
            let slots = (&raw mut (*this).slots).cast::<Padded<AtomicU64>>();
            for slot in 0..W {
                slots.add(slot).write(Padded(AtomicU64::new(Self::initial(slot))));
            }
            (&raw mut (*this).peers).write(Peers::shared());
            (&raw mut (*this).value).write(UnsafeCell::new(value));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn number_of_places_is_power_of_two() {
        let possible = [0, 1, 2, 3, 1 << 16, 1 << 17].map(is_possible);
        assert_eq!(possible, [false, true, true, false, true, false]);
    }
}
