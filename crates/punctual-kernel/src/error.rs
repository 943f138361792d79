//! What can go wrong, one type for each operation.

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
    /// Why there is no new thread.
    SpawnError {
        /// Every slot of the kernel has a thread that has not ended.
        TooManyThreads => "every thread slot is in use: give the kernel more, or join a thread first",
        /// Another thread runs on this stack.
        StackInUse => "the stack belongs to a thread that has not ended: give each thread its own",
        /// The stack is too small for this port and this argument; the number is the least size that would do.
        StackTooSmall(needed: usize) => "the stack is too small: it needs at least {needed} bytes",
        /// Priorities are 1 to 32.
        Priority(priority: u8) => "{priority} is no priority: they are 1 to 32, and 32 goes first",
    }
}

error! {
    /// Why a thread could not be waited for, or how it ended.
    JoinError {
        /// The handle is of a thread whose slot has another thread by now.
        Stale => "the thread has ended, and its slot belongs to another one",
        /// A thread waits for itself.
        Itself => "a thread cannot wait for its own end",
        /// The thread ended while it held the mutex of this name.
        EndedHolding(mutex: &'static str) => "the thread ended while it held the mutex `{mutex}`: unlock it first",
        /// There is nobody who could wait: see [`WaitError::CannotBlock`].
        CannotBlock => "interrupt handlers, masked sections and code outside of threads cannot wait",
    }
}

error! {
    /// Why a wait has ended otherwise than it should.
    WaitError {
        /// The caller is an interrupt handler, has interrupts masked, or is no thread.
        CannotBlock => "interrupt handlers, masked sections and code outside of threads cannot wait",
        /// The time has come before a unit.
        TimedOut => "the time was over",
    }
}

error! {
    /// Why a semaphore was not signalled. It is unchanged.
    SignalError {
        /// It would have more units than its maximum, which is this.
        Overflow(maximum: u32) => "the semaphore would have more than its {maximum} units: somebody signals without need",
    }
}

error! {
    /// Why a mutex was not locked.
    LockError {
        /// The calling thread holds it.
        Recursive(mutex: &'static str) => "the thread already holds the mutex `{mutex}`: pass the guard on instead",
        /// Whoever holds it waits, directly or through others, for what the caller holds.
        Deadlock(mutex: &'static str) => "the mutex `{mutex}` is held by a thread that waits for the caller: lock in one order",
        /// The thread that held it has ended, so the data may be half changed.
        OwnerEnded(mutex: &'static str) => "the thread that held the mutex `{mutex}` has ended without unlocking it",
        /// The caller holds a mutex of the same group, named here, whose order is not below.
        OutOfOrder(held: &'static str) => "the caller holds `{held}`, which comes later: pass its guard to `and_lock`, or use `lock_all`",
        /// It is held, and the caller does not want to wait.
        WouldBlock(mutex: &'static str) => "the mutex `{mutex}` is held by another thread",
        /// The caller is an interrupt handler, has interrupts masked, or is no thread.
        CannotBlock => "interrupt handlers, masked sections and code outside of threads cannot hold a mutex",
    }
}

error! {
    /// Why a mutex was not unlocked.
    UnlockError {
        /// Another thread holds it, or none does.
        NotOwner(mutex: &'static str) => "the mutex `{mutex}` is not held by the caller",
    }
}

error! {
    /// Why an interrupt has no subscriber, or a callback no server.
    SubscribeError {
        /// The kernel has no slot for this number; they are below this.
        NoSuchInterrupt(slots: usize) => "the kernel has interrupt slots for numbers below {slots}: give it more",
        /// The interrupt has a subscriber.
        Taken => "the interrupt has a subscriber already",
        /// A period has at least one nanosecond.
        Period => "a period of zero cannot be kept",
        /// The server has a thread already.
        Started => "the server has been started already",
        /// There is no thread for the server.
        Spawn(error: SpawnError) => "no thread for the server: {error}",
    }
}

error! {
    /// What a kernel cannot go on after. The port decides how it ends: see [`Port::fault`](crate::Port::fault).
    Fault {
        /// The thread in this slot has written below its stack, by now over what lies there.
        StackOverflow(slot: usize) => "the thread in slot {slot} has overflowed its stack: give it a larger one",
    }
}
