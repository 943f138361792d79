//! Threads: spawning, ending, joining and sleeping.

use core::fmt;
use core::marker::PhantomData;
use core::ptr;

use crate::kernel::Section;
use crate::rank::Rank;
use crate::slot::{State, ThreadSlot, Wake};
use crate::stack::Use;
use crate::{JoinError, Port, SpawnError, Stack, WaitError, switch};

/// A handle of a thread. A copy does not prevent the thread from ending, nor its slot from being
/// reused: then the handle reports that.
///
/// # Examples
///
#[cfg_attr(not(feature = "sim"), doc = "```ignore")]
#[cfg_attr(feature = "sim", doc = "```")]
/// # mod guide { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/guide.rs")); }
/// # use guide::*;
/// static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
///
/// fn child(argument: u32) {
///     assert_eq!(argument, 7);
///     Thread::yield_now();
///     Thread::sleep_until(1_000).unwrap();
/// }
///
/// fn parent(_: ()) {
///     let child = Thread::spawn(6, &STACKS[1], child, 7).unwrap(); // higher: runs at once
///     assert_eq!(child.priority(), Some(6));
///     child.join().unwrap();
///     assert_eq!(Kernel::now(), 1_000);
///     assert_eq!(child.priority(), None);
///     assert!(STACKS[1].high_water() > 0);
/// }
///
/// # sim::run(|| {
/// Thread::spawn(5, &STACKS[0], parent, ()).unwrap();
/// # Kernel::run();
/// # });
/// ```
pub struct Thread<P: Port> {
    /// The address of its slot.
    slot: usize,
    generation: u32,
    _port: PhantomData<fn() -> P>,
}

impl<P: Port> Clone for Thread<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Port> Copy for Thread<P> {}

impl<P: Port> PartialEq for Thread<P> {
    fn eq(&self, other: &Self) -> bool {
        (self.slot, self.generation) == (other.slot, other.generation)
    }
}

impl<P: Port> Eq for Thread<P> {}

impl<P: Port> fmt::Debug for Thread<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thread")
            .field("slot", &self.slot)
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}

/// The data at the upper end of a new thread's stack.
struct Start<A> {
    entry: fn(A),
    argument: A,
}

impl<P: Port> Thread<P> {
    /// Starts a thread, which calls `entry(argument)` and ends when that returns. If it precedes
    /// the caller, it runs at once; otherwise after all ready threads of its priority.
    ///
    /// Spawned from an interrupt handler, or before [`run`](crate::Kernel::run), it runs when it is
    /// scheduled.
    ///
    /// # Errors
    /// If there is no slot, the stack is in use or too small, or `priority` is not in 1 to 32. The
    /// argument is dropped.
    pub fn spawn<A: Send + 'static, const SIZE: usize>(
        priority: u8,
        stack: &'static Stack<P, SIZE>,
        entry: fn(A),
        argument: A,
    ) -> Result<Self, SpawnError> {
        const { assert!(align_of::<Start<A>>() <= 16, "the argument may be aligned to 16 bytes at most") };
        // The canary is the lowest word.
        let needed = P::MIN_STACK + size_of::<Start<A>>().next_multiple_of(16) + 16;
        if SIZE < needed {
            return Err(SpawnError::StackTooSmall(needed));
        }
        let rank = Rank::of(priority).ok_or(SpawnError::Priority(priority))?;
        let section = Section::<P>::enter(&stack.home);
        let kernel = section.kernel;
        if stack.state.get() != Use::Free {
            drop(section);
            return Self::prepare_and_spawn(priority, stack, entry, argument);
        }
        let Some(slot) = kernel.take_slot() else {
            drop(section);
            return Self::prepare_and_spawn(priority, stack, entry, argument);
        };
        stack.state.set(Use::Taken);
        // SAFETY: the stack is large enough, as checked above, aligned to 16 bytes, and has no
        // other user: it is claimed.
        let context = unsafe {
            let start = stack.top().sub(size_of::<Start<A>>().next_multiple_of(16));
            start.cast::<Start<A>>().write(Start { entry, argument });
            P::prepare(start, switch::enter::<P, A>)
        };
        slot.context.set(context);
        if !P::GUARDED {
            slot.canary.set(stack.canary());
        }
        slot.stack.set(Some(&stack.state));
        slot.rank.set(rank);
        slot.base.set(rank);
        let this = Self::of(slot);
        kernel.make_ready(slot);
        section.preempt(slot, rank);
        Ok(this)
    }

    /// Spawns the first thread on a stack, or the first of the kernel; otherwise returns the error.
    #[cold]
    #[inline(never)]
    fn prepare_and_spawn<A: Send + 'static, const SIZE: usize>(
        priority: u8,
        stack: &'static Stack<P, SIZE>,
        entry: fn(A),
        argument: A,
    ) -> Result<Self, SpawnError> {
        let is_free = {
            let section = Section::<P>::enter(&stack.home);
            let is_free = stack.state.get() == Use::Free;
            if is_free && !section.kernel.link_slots() {
                return Err(SpawnError::TooManyThreads);
            }
            is_free
        };
        if !is_free {
            stack.prepare()?;
        }
        Self::spawn(priority, stack, entry, argument)
    }

    /// Returns the calling thread; `None` in an interrupt handler outside of threads, or outside of
    /// this kernel.
    pub fn current() -> Option<Self> {
        let section = Section::<P>::enter(&P::HOME);
        section.kernel.current().map(Self::of)
    }

    #[inline]
    fn of(slot: &'static ThreadSlot<P>) -> Self {
        Self { slot: ptr::from_ref(slot).addr(), generation: slot.generation.get(), _port: PhantomData }
    }

    /// Lets the other ready threads of the caller's priority run first. Without any, and in an
    /// interrupt handler or a masked section, it does nothing.
    #[inline]
    pub fn yield_now() {
        let section = Section::<P>::enter(&P::HOME);
        if !section.is_nested() {
            section.kernel.pass_on();
        }
    }

    /// Waits until `time`, in nanoseconds of [`Kernel::now`](crate::Kernel::now). Returns at once
    /// if it has passed.
    ///
    /// # Errors
    /// [`WaitError::CannotBlock`] if the caller cannot wait.
    pub fn sleep_until(time: u64) -> Result<(), WaitError> {
        let section = Section::<P>::enter(&P::HOME);
        let me = section.blocker().ok_or(WaitError::CannotBlock)?;
        if time > P::now() {
            section.kernel.ready.remove(me);
            section.kernel.suspend(me, State::Sleeping, Some(time));
        }
        Ok(())
    }

    /// Waits until the thread has ended.
    ///
    /// # Errors
    /// * [`JoinError::EndedHolding`] if it ended while it held a mutex.
    /// * [`JoinError::Stale`] if another thread has its slot by now.
    /// * [`JoinError::Itself`] or [`JoinError::CannotBlock`] if the caller cannot wait for it.
    pub fn join(self) -> Result<(), JoinError> {
        let section = Section::<P>::enter(&P::HOME);
        let slot = self.slot_in(&section)?;
        let generation = slot.generation.get();
        if generation == self.generation.wrapping_add(1) && slot.state.get() == State::Ended {
            return slot.result.get();
        }
        if generation != self.generation {
            return Err(JoinError::Stale);
        }
        let me = section.blocker().ok_or(JoinError::CannotBlock)?;
        if slot.is(me) {
            return Err(JoinError::Itself);
        }
        section.kernel.ready.remove(me);
        slot.joiners.insert(me);
        section.kernel.suspend(me, State::Joining, None);
        me.result.get()
    }

    /// Returns its priority, including inherited ones; `None` if it has ended.
    pub fn priority(self) -> Option<u8> {
        let section = Section::<P>::enter(&P::HOME);
        let slot = self.slot_in(&section).ok()?;
        (slot.generation.get() == self.generation).then(|| slot.rank.get().priority())
    }

    /// Returns its state.
    pub fn state(self) -> State {
        let section = Section::<P>::enter(&P::HOME);
        match self.slot_in(&section) {
            Ok(slot) if slot.generation.get() == self.generation => slot.state.get(),
            _ => State::Ended,
        }
    }

    fn slot_in(self, section: &Section<P>) -> Result<&'static ThreadSlot<P>, JoinError> {
        section.kernel.slot_at(self.slot).ok_or(JoinError::Stale)
    }
}

/// The first function of every thread, with interrupts masked; `switch::enter` calls it.
pub(crate) extern "C" fn begin<P: Port, A>(start: *mut u8) -> ! {
    // SAFETY: written there by `spawn`, and read once.
    let Start { entry, argument } = unsafe { start.cast::<Start<A>>().read() };
    // SAFETY: the context switch that got here masked interrupts, and this is the beginning of the
    // thread.
    unsafe { P::unmask() };
    P::call(entry, argument);
    end::<P>()
}

/// Ends the calling thread.
fn end<P: Port>() -> ! {
    let section = Section::<P>::enter(&P::HOME);
    let kernel = section.kernel;
    let Some(me) = kernel.current() else { unreachable!("only threads end here") };
    let mut result = Ok(());
    while let Some(mutex) = me.held.get() {
        me.held.set(mutex.abandon(kernel));
        result = Err(JoinError::EndedHolding(mutex.name()));
    }
    while let Some(joiner) = me.joiners.first() {
        me.joiners.remove_first(joiner);
        joiner.result.set(result);
        kernel.wake(joiner, Wake::Granted);
    }
    kernel.ready.remove(me);
    me.state.set(State::Ended);
    me.result.set(result);
    me.generation.set(me.generation.get().wrapping_add(1));
    // From here on the stack is free, but still in use by this function. With interrupts masked no
    // code can spawn a thread on it before the switch, and nothing returns here after it.
    if let Some(stack) = me.stack.take() {
        stack.set(Use::Free);
    }
    kernel.give_slot(me);
    kernel.switch(Some(me), kernel.ready.highest());
    unreachable!("a thread that has ended is in no ring")
}
