//! The errors, one type for each operation.

use core::fmt;

macro_rules! error {
    ($(#[$outer:meta])* $name:ident { $($(#[$inner:meta])* $variant:ident $(($field:ident: $type:ty))? => $text:literal,)* }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$inner])* $variant $(($type))?,)*
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant $(($field))? => write!(f, $text),)*
                }
            }
        }

        impl core::error::Error for $name {}
    };
}

error! {
    /// The reason a thread was not spawned.
    SpawnError {
        /// Every slot of the kernel has a thread that has not ended.
        TooManyThreads => "every thread slot is in use: give the kernel more slots, or join a thread first",
        /// Another thread runs on this stack.
        StackInUse => "the stack belongs to a thread that has not ended: give each thread its own",
        /// The stack is too small for this port and this argument; the number is the minimum size.
        StackTooSmall(needed: usize) => "the stack is too small: it needs at least {needed} bytes",
        /// Priorities are 1 to 32.
        Priority(priority: u8) => "{priority} is not a priority: priorities are 1 to 32, 32 is the highest",
    }
}

error! {
    /// The reason a thread could not be joined, or the way it ended.
    JoinError {
        /// The thread has ended, and another one uses its slot.
        Stale => "the thread has ended, and its slot belongs to another one",
        /// A thread waits for itself.
        Itself => "a thread cannot wait for its own end",
        /// The thread ended while it held the mutex of this name.
        EndedHolding(mutex: &'static str) => "the thread ended while it held the mutex `{mutex}`: unlock it first",
        /// No thread is calling that could wait: see [`WaitError::CannotBlock`].
        CannotBlock => "interrupt handlers, masked sections and code outside of threads cannot wait",
    }
}

error! {
    /// The reason a wait failed.
    WaitError {
        /// The caller is an interrupt handler, has interrupts masked, or is not a thread.
        CannotBlock => "interrupt handlers, masked sections and code outside of threads cannot wait",
        /// The deadline passed before a unit was available.
        TimedOut => "the wait timed out",
    }
}

error! {
    /// The reason a semaphore was not signaled. The semaphore is unchanged.
    SignalError {
        /// The semaphore would exceed its maximum, which is this number.
        Overflow(maximum: u32) => "the semaphore would exceed its {maximum} units: a caller signals too often",
    }
}

error! {
    /// The reason a mutex was not locked.
    LockError {
        /// The calling thread holds the mutex.
        Recursive(mutex: &'static str) => "the thread already holds the mutex `{mutex}`: pass the guard on instead",
        /// The holder waits, directly or through others, for a mutex that the caller holds.
        Deadlock(mutex: &'static str) => "the mutex `{mutex}` is held by a thread that waits for the caller: lock in one order",
        /// The thread that held it has ended, so the data may be half changed.
        OwnerEnded(mutex: &'static str) => "the thread that held the mutex `{mutex}` has ended without unlocking it",
        /// The caller holds a mutex of the same group, named here, whose order is not lower.
        OutOfOrder(held: &'static str) => "the caller holds `{held}`, which is later in the order: pass its guard to `and_lock`, or use `lock_all`",
        /// The mutex is held, and the caller does not want to wait.
        WouldBlock(mutex: &'static str) => "the mutex `{mutex}` is held by another thread",
        /// The caller is an interrupt handler, has interrupts masked, or is not a thread.
        CannotBlock => "interrupt handlers, masked sections and code outside of threads cannot hold a mutex",
    }
}

error! {
    /// The reason a mutex was not unlocked.
    UnlockError {
        /// The caller does not hold the mutex.
        NotOwner(mutex: &'static str) => "the mutex `{mutex}` is not held by the caller",
    }
}

error! {
    /// The reason an interrupt has no subscriber, or a callback no server.
    SubscribeError {
        /// The kernel has no slot for this number; numbers are below this one.
        NoSuchInterrupt(slots: usize) => "the kernel has interrupt slots for numbers below {slots}: give it more slots",
        /// The interrupt has a subscriber.
        Taken => "the interrupt has a subscriber already",
        /// The callback is subscribed to the interrupt of this number.
        Subscribed(number: u32) => "the callback is subscribed to interrupt {number} already: use one callback per interrupt",
        /// A period is at least one nanosecond.
        Period => "the period is zero",
        /// The server has a thread already.
        Started => "the server has been started already",
        /// The server's thread could not be spawned.
        Spawn(error: SpawnError) => "no thread for the server: {error}",
    }
}

error! {
    /// An unrecoverable fault of a kernel. The port decides how it ends: see
    /// [`Port::fault`](crate::Port::fault).
    Fault {
        /// The thread in this slot has written below its stack, and may have overwritten other
        /// data.
        StackOverflow(slot: usize) => "the thread in slot {slot} has overflowed its stack: give it a larger one",
    }
}
