//! The interface of a processor, a process or a simulation to the kernel.

use crate::{Fault, Kernel};

/// A platform for a [`Kernel`]: one core, one thread of an operating system, or a simulation of a
/// core.
///
/// All kernel state is accessed between [`mask`](Self::mask) and [`restore`](Self::restore), by
/// code that [`enter`](Self::enter) has admitted. So it needs no atomic operations.
///
/// # Safety
/// * `enter` returns only on the core or the thread of the operating system that the kernel runs
///   on, always with the same kernel, and only if every object with this `home` has been used with
///   this kernel alone. No other code has the [slots](crate::ThreadSlot) of that kernel.
/// * Between `mask` and `restore` no other code of that core or thread runs, except for threads
///   that the kernel switches to.
/// * `switch` and `prepare` meet their documentation.
pub unsafe trait Port: Sized + 'static {
    /// Identifies the kernel that an object belongs to. Empty if there can be only one.
    type Home: Sync + 'static;
    /// The home of an object that has not been used yet.
    const HOME: Self::Home;

    /// Records whether interrupts were masked.
    type Mask: Copy;

    /// The minimum size of a [`Stack`](crate::Stack), in bytes.
    const MIN_STACK: usize;

    /// The memory below every stack: empty, or a page that [`guard`](Self::guard) protects.
    type Guard: Sync + 'static;
    /// A guard that is not protected yet.
    const GUARD: Self::Guard;
    /// `true` if a stack overflow faults in the guard. Otherwise the kernel checks for it at each
    /// switch.
    const GUARDED: bool;

    /// Returns the kernel that the caller runs on.
    ///
    /// # Safety
    /// The reference is used only while that kernel exists. A simulated one ends.
    ///
    /// # Panics
    /// If the caller runs on no kernel, or if the object with this home belongs to another.
    unsafe fn enter(home: &Self::Home) -> &'static Kernel<Self>;

    /// Protects the guard below a stack permanently. Called before the first thread runs on the
    /// stack.
    fn guard(guard: &'static Self::Guard);

    /// Masks interrupts, and returns whether they were masked before.
    fn mask() -> Self::Mask;

    /// Returns `true` if interrupts were masked before.
    fn was_masked(mask: Self::Mask) -> bool;

    /// Restores the previous mask.
    ///
    /// # Safety
    /// `mask` is the value of the last `mask` that has not been restored.
    unsafe fn restore(mask: Self::Mask);

    /// Unmasks interrupts, for the first time in a thread.
    ///
    /// # Safety
    /// Interrupts are masked, and the caller is at the beginning of a thread.
    unsafe fn unmask();

    /// Prepares a new thread below `top`, so that the first switch to the returned context jumps to
    /// `entry` with interrupts masked and the stack pointer at `top`.
    ///
    /// # Safety
    /// `top` is the upper end of an unused stack, aligned to 16 bytes, with at least half of
    /// [`MIN_STACK`](Self::MIN_STACK) below it.
    unsafe fn prepare(top: *mut u8, entry: unsafe extern "C" fn()) -> *mut u8;

    /// Saves the callee-saved state on the current stack and that stack's pointer in `from`, and
    /// continues at the point where `to` was saved or prepared.
    ///
    /// # Safety
    /// Interrupts are masked, `from` is writable, and `to` was saved by this function or made by
    /// `prepare` and has not been continued since.
    unsafe fn switch(from: *mut *mut u8, to: *mut u8);

    /// Returns the time in nanoseconds, which never goes backwards.
    fn now() -> u64;

    /// Sets the timer to interrupt at `time` or as soon after as possible; never if it is
    /// `u64::MAX`. Replaces the previous setting.
    fn alarm(time: u64);

    /// Called with interrupts masked when no thread is ready: sleeps until an interrupt is pending,
    /// unmasks it briefly, and masks again.
    ///
    /// # Safety
    /// Called by the kernel's idle loop only.
    unsafe fn idle();

    /// Enables an interrupt in the interrupt controller.
    fn enable_interrupt(number: u32);

    /// Disables an interrupt in the interrupt controller.
    fn disable_interrupt(number: u32);

    /// Calls a thread's function. A port may do more, such as containing a panic; the return of
    /// this function ends the thread.
    #[inline]
    fn call<A>(entry: fn(A), argument: A) {
        entry(argument);
    }

    /// Handles an unrecoverable fault.
    fn fault(fault: Fault) -> ! {
        panic!("{fault}")
    }
}
