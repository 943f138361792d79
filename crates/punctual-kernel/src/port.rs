//! What a processor, a process or a simulation provides.

use crate::{Fault, Kernel};

/// A place where a [`Kernel`] runs: one core, one thread of an operating system, or a simulation of a core.
///
/// Everything that the kernel works on is accessed between [`mask`](Self::mask) and [`restore`](Self::restore), by code that
/// [`enter`](Self::enter) has let in. That is why it needs no atomic operations.
///
/// # Safety
/// * `enter` returns only on the core or the thread of the operating system that the kernel runs on, always with the same
///   kernel, and only if every object with this `home` has been used with this kernel alone. Nobody else has the
///   [slots](crate::ThreadSlot) of that kernel.
/// * Between `mask` and `restore` nothing else of that core or thread runs, but for what the kernel switches to.
/// * `switch` and `prepare` do what they say.
pub unsafe trait Port: Sized + 'static {
    /// By what an object is known to belong to one kernel. Nothing, where there can be only one.
    type Home: Sync + 'static;
    /// The home of an object that has not been used yet.
    const HOME: Self::Home;

    /// Whether interrupts were masked.
    type Mask: Copy;

    /// The least number of bytes a [`Stack`](crate::Stack) has to have.
    const MIN_STACK: usize;

    /// What lies below every stack: nothing, or a page that [`guard`](Self::guard) takes away.
    type Guard: Sync + 'static;
    /// One that is still there.
    const GUARD: Self::Guard;
    /// Whether an overflow of a stack ends in what is below it. Otherwise the kernel looks for it at each switch.
    const GUARDED: bool;

    /// The kernel that the caller runs on.
    ///
    /// # Safety
    /// The reference is used as long as that kernel exists. A simulated one ends.
    ///
    /// # Panics
    /// If it runs on none, or if the object with this home belongs to another.
    unsafe fn enter(home: &Self::Home) -> &'static Kernel<Self>;

    /// Keeps everybody from what is below a stack, for good. Called before the first thread runs on that.
    fn guard(guard: &'static Self::Guard);

    /// Masks interrupts, and says whether they were masked before.
    fn mask() -> Self::Mask;

    /// Whether interrupts were masked before.
    fn was_masked(mask: Self::Mask) -> bool;

    /// Makes the mask what it was.
    ///
    /// # Safety
    /// With the value of the last `mask` that has not been restored.
    unsafe fn restore(mask: Self::Mask);

    /// Allows interrupts, for the first time in a thread.
    ///
    /// # Safety
    /// Interrupts are masked, and the caller is at the beginning of a thread.
    unsafe fn unmask();

    /// Lays out a new thread below `top`, so that the first switch to what this returns jumps to `entry` with interrupts masked
    /// and the stack pointer at `top`.
    ///
    /// # Safety
    /// `top` is the upper end of a stack that nobody uses, aligned to 16 bytes, with at least half of [`MIN_STACK`](Self::MIN_STACK)
    /// below it.
    unsafe fn prepare(top: *mut u8, entry: unsafe extern "C" fn()) -> *mut u8;

    /// Saves what a function has to preserve on the current stack and that stack's pointer in `from`, and continues where `to`
    /// has been saved or prepared.
    ///
    /// # Safety
    /// Interrupts are masked, `from` can be written, and `to` was saved by this function or made by `prepare` and has not been
    /// continued since.
    unsafe fn switch(from: *mut *mut u8, to: *mut u8);

    /// The time in nanoseconds, which never goes back.
    fn now() -> u64;

    /// Has the timer interrupt at `time` or as soon after as it can; at no time if it is `u64::MAX`. The last call counts.
    fn alarm(time: u64);

    /// Called with interrupts masked when no thread is ready: sleeps until an interrupt is there, allows it for a moment, and
    /// masks again.
    ///
    /// # Safety
    /// Called by the kernel's idle loop alone.
    unsafe fn idle();

    /// Has the interrupt controller pass an interrupt on.
    fn enable_interrupt(number: u32);

    /// Has the interrupt controller hold an interrupt back.
    fn disable_interrupt(number: u32);

    /// Calls what a thread is for. A port may do more, such as to contain a panic; what returns from it ends the thread.
    #[inline]
    fn call<A>(entry: fn(A), argument: A) {
        entry(argument);
    }

    /// Ends what cannot go on.
    fn fault(fault: Fault) -> ! {
        panic!("{fault}")
    }
}
