//! Functions that a board provides, and the port of a partition there.
//!
//! The board's crate defines the functions by their names; `punctual-bare` is one.

mod app_port;
pub(crate) mod clock;

use core::alloc::Layout;
use core::convert::Infallible;
use core::ptr::NonNull;

pub use self::app_port::AppPort;
#[cfg(feature = "async")]
pub(crate) use self::per_core::{PerCore, per_thread};

/// Error of an operating system, which a board does not have.
pub(crate) type SystemError = Infallible;

/// Returns the remedy for an error, as the end of a message.
pub(crate) fn remedy(error: &SystemError) -> &'static str {
    match *error {}
}

/// Interrupt number that requests a shutdown of the app.
pub(crate) const STOP: u32 = u32::MAX;

/// Calls a function with interrupts masked.
pub(crate) type Uninterrupted = fn(&mut dyn FnMut());

unsafe extern "Rust" {
    /// Returns the number of this core, from 0.
    pub(crate) safe fn __punctual_board_core() -> u32;

    /// Returns the pointer last stored by [`set_own`] on this core; null before.
    pub(crate) safe fn __punctual_board_own() -> *const ();

    /// Stores a pointer for this core.
    pub(crate) safe fn __punctual_board_set_own(own: *const ());

    /// Makes another core call `work` once, with interrupts masked, on its own stack; that core
    /// sees everything this core did before. Returns `false` if there is no such core.
    pub(crate) safe fn __punctual_board_start(core: u32, work: fn()) -> bool;

    /// Raises the interrupt [`bell`] on another core, or ends its sleep if interrupts are masked
    /// there. The handler there sees everything this core did before.
    pub(crate) safe fn __punctual_board_ring(core: u32);

    /// Returns the number of the interrupt by which one core notifies another.
    pub(crate) safe fn __punctual_board_bell() -> u32;

    /// Must be called first by the handler of that interrupt. Does not return if the program ends.
    pub(crate) safe fn __punctual_board_rung();

    /// Routes an interrupt to a core; returns `false` if impossible.
    pub(crate) safe fn __punctual_board_route(number: u32, core: u32) -> bool;

    /// As [`handle`], with the same functions, for a core that was [started](start) since.
    pub(crate) safe fn __punctual_board_join();

    /// Returns nanoseconds since some time before the start. Never goes backwards.
    pub(crate) safe fn __punctual_board_now() -> u64;

    /// Sets the timer's interrupt to this time, in nanoseconds; never if it is `u64::MAX`.
    pub(crate) safe fn __punctual_board_alarm(time: u64);

    /// Sets the handlers: `timer` for the timer's interrupt, `interrupt` for any other with its
    /// number, and then `after`; all of them run with interrupts masked, on the stack of the
    /// interrupted code. They may unmask interrupts for a while, in which the same interrupt can
    /// occur again unless it is disabled, and the timer's if it is set. The interrupted code finds
    /// all registers unchanged. Not for handlers.
    pub(crate) safe fn __punctual_board_handle(timer: fn(), interrupt: fn(u32), after: fn());

    /// Sets the function that returns the level of the calling core when the program ends by a
    /// panic or a fault; `None` if the core runs no app. For messages only.
    pub(crate) safe fn __punctual_board_explain(level: fn() -> Option<u8>);

    /// Enables an interrupt.
    pub(crate) safe fn __punctual_board_enable(number: u32);

    /// Disables an interrupt.
    pub(crate) safe fn __punctual_board_disable(number: u32);

    /// Unmasks interrupts on this core, which the code that runs from now on has to tolerate.
    pub(crate) fn __punctual_board_unmask();

    /// Masks interrupts on this core.
    pub(crate) safe fn __punctual_board_mask();

    /// Sleeps until an interrupt is pending, masked or not; may return earlier.
    pub(crate) safe fn __punctual_board_wait();

    /// Allocates memory that is never used for anything else.
    pub(crate) safe fn __punctual_board_memory(layout: Layout) -> Option<NonNull<u8>>;

    /// Memory of [`SIZE`](punctual_core::remote::SIZE) bytes that Linux maps as well, aligned to a
    /// page, and a function that calls another with interrupts masked and then restores the mask;
    /// `None` on a board without Linux.
    pub(crate) safe fn __punctual_board_figures() -> Option<(NonNull<u8>, Uninterrupted)>;

    /// Prints.
    pub(crate) safe fn __punctual_board_print(text: &str);

    /// Ends the program.
    pub(crate) safe fn __punctual_board_exit(code: u8) -> !;
}

pub(crate) use {
    __punctual_board_alarm as alarm, __punctual_board_bell as bell, __punctual_board_core as core,
    __punctual_board_disable as disable, __punctual_board_enable as enable, __punctual_board_exit as exit,
    __punctual_board_explain as explain, __punctual_board_figures as figures,
    __punctual_board_handle as handle, __punctual_board_join as join, __punctual_board_mask as mask,
    __punctual_board_memory as memory, __punctual_board_now as now, __punctual_board_own as own,
    __punctual_board_print as print, __punctual_board_ring as ring, __punctual_board_route as route,
    __punctual_board_rung as rung, __punctual_board_set_own as set_own, __punctual_board_start as start,
    __punctual_board_unmask as unmask, __punctual_board_wait as wait,
};

/// Per-core values.
#[cfg(feature = "async")]
mod per_core {
    use core::cell::Cell;

    /// Maximum number of cores of a board.
    const CORES: usize = 4;

    /// A value for each core, used only by that core.
    ///
    /// An interrupt handler that changes it has to restore it.
    pub(crate) struct PerCore<T>([Cell<T>; CORES]);

    // SAFETY: a core uses only its own value, and executes one thing at a time; the value is copied
    // in and out.
    unsafe impl<T: Copy> Sync for PerCore<T> {}

    impl<T: Copy> PerCore<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self([Cell::new(value), Cell::new(value), Cell::new(value), Cell::new(value)])
        }

        fn mine(&self) -> &Cell<T> {
            &self.0[super::core() as usize % CORES]
        }

        pub(crate) fn get(&self) -> T {
            self.mine().get()
        }

        pub(crate) fn set(&self, value: T) {
            self.mine().set(value);
        }

        pub(crate) fn replace(&self, value: T) -> T {
            self.mine().replace(value)
        }
    }

    /// Declares statics with a value for each thread, which is the core.
    macro_rules! per_thread {
        ($($(#[$attribute:meta])* static $name:ident: $type:ty = $value:expr;)*) => {
            $($(#[$attribute])* static $name: $crate::board::port::PerCore<$type> = $crate::board::port::PerCore::new($value);)*
        };
    }

    pub(crate) use per_thread;
}
