//! What a board provides. Its crate defines these functions by their names; `punctual-bare` is one.

use core::alloc::Layout;
use core::ptr::NonNull;

/// What a board says in place of an interrupt's number if whoever runs it wants the app to shut down.
pub(crate) const STOP: u32 = u32::MAX;

unsafe extern "Rust" {
    /// The number of this core, from 0 on.
    pub(crate) safe fn __punctual_board_core() -> u32;

    /// What [`set_own`] was last called with on this core; null before.
    pub(crate) safe fn __punctual_board_own() -> *const ();

    /// Keeps a pointer for this core.
    pub(crate) safe fn __punctual_board_set_own(own: *const ());

    /// Has another core call `work` once, with interrupts masked, on a stack of its own; what this core did before, that one sees.
    /// `false` if there is no such core.
    pub(crate) safe fn __punctual_board_start(core: u32, work: fn()) -> bool;

    /// Raises the interrupt [`bell`] on another core, or has it end its sleep if interrupts are masked there. What this core did
    /// before, that one sees in its handler.
    pub(crate) safe fn __punctual_board_ring(core: u32);

    /// The number of the interrupt by which one core calls another.
    pub(crate) safe fn __punctual_board_bell() -> u32;

    /// What the handler of that has to begin with. It does not return if the program ends.
    pub(crate) safe fn __punctual_board_rung();

    /// Has an interrupt come to a core; `false` if it cannot.
    pub(crate) safe fn __punctual_board_route(number: u32, core: u32) -> bool;

    /// As [`handle`], with the same functions, for a core that was [started](start) since.
    pub(crate) safe fn __punctual_board_join();

    /// Nanoseconds since some time before the start. Never goes backwards.
    pub(crate) safe fn __punctual_board_now() -> u64;

    /// Has the timer's interrupt pending from this time on, in nanoseconds; never if it is `u64::MAX`.
    pub(crate) safe fn __punctual_board_alarm(time: u64);

    /// Has `timer` called for the timer's interrupt, `interrupt` for any other with its number, and then `after`; all of them with
    /// interrupts masked, on the stack of what is interrupted. They may unmask them for a while, in which the same interrupt
    /// comes again unless it is held back, and the timer's if it is set. What is interrupted finds all registers as they were. Not
    /// for handlers.
    pub(crate) safe fn __punctual_board_handle(timer: fn(), interrupt: fn(u32), after: fn());

    /// Has `level` asked, when the program ends by a panic or a fault, at which level the core that calls it was; `None` if it
    /// runs no app. For messages alone.
    pub(crate) safe fn __punctual_board_explain(level: fn() -> Option<u8>);

    /// Passes an interrupt on.
    pub(crate) safe fn __punctual_board_enable(number: u32);

    /// Holds an interrupt back.
    pub(crate) safe fn __punctual_board_disable(number: u32);

    /// Allows this core to be interrupted, which what runs from now on has to bear.
    pub(crate) fn __punctual_board_unmask();

    /// Keeps this core from being interrupted.
    pub(crate) safe fn __punctual_board_mask();

    /// Sleeps until an interrupt is pending, masked or not; may return earlier.
    pub(crate) safe fn __punctual_board_wait();

    /// Memory that nothing else ever uses.
    pub(crate) safe fn __punctual_board_memory(layout: Layout) -> Option<NonNull<u8>>;

    /// Prints.
    pub(crate) safe fn __punctual_board_print(text: &str);

    /// Ends the program.
    pub(crate) safe fn __punctual_board_exit(code: u8) -> !;
}

pub(crate) use {
    __punctual_board_alarm as alarm, __punctual_board_bell as bell, __punctual_board_core as core,
    __punctual_board_disable as disable, __punctual_board_enable as enable, __punctual_board_exit as exit,
    __punctual_board_explain as explain, __punctual_board_handle as handle, __punctual_board_join as join,
    __punctual_board_mask as mask, __punctual_board_memory as memory, __punctual_board_now as now,
    __punctual_board_own as own, __punctual_board_print as print, __punctual_board_ring as ring,
    __punctual_board_route as route, __punctual_board_rung as rung, __punctual_board_set_own as set_own,
    __punctual_board_start as start, __punctual_board_unmask as unmask, __punctual_board_wait as wait,
};
