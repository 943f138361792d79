//! What `punctual` asks of a board, by the names that it gives these functions.

use core::alloc::Layout;
use core::cell::Cell;
use core::fmt::Write;
use core::ptr::NonNull;

use crate::console::Console;
use crate::interrupt::{self, Handler, TIMER};
use crate::{arch, end, memory, time};

/// What an app has called on interrupts.
#[derive(Clone, Copy)]
struct Callbacks {
    timer: fn(),
    interrupt: fn(u32),
    after: fn(),
}

/// Written with interrupts masked, on the one core that is interrupted. Zero at first, so that it takes no place in an image.
struct Shared(Cell<Option<Callbacks>>);

// SAFETY: one core uses it, and a write is not interrupted by a read.
unsafe impl Sync for Shared {}

static CALLBACKS: Shared = Shared(Cell::new(None));

/// Handles interrupts once there are callbacks.
static HANDLER: Handler = Handler {
    interrupt: |number| match (CALLBACKS.0.get(), number) {
        (Some(callbacks), TIMER) => (callbacks.timer)(),
        (Some(callbacks), number) => (callbacks.interrupt)(number),
        (None, number) => interrupt::disable(number),
    },
    after: || {
        if let Some(callbacks) = CALLBACKS.0.get() {
            (callbacks.after)();
        }
    },
};

#[unsafe(no_mangle)]
fn __punctual_board_handle(timer: fn(), interrupt: fn(u32), after: fn()) {
    arch::mask_interrupts();
    CALLBACKS.0.set(Some(Callbacks { timer, interrupt, after }));
    interrupt::handle(&HANDLER);
    time::enable_alarm();
}

#[unsafe(no_mangle)]
fn __punctual_board_now() -> u64 {
    time::now()
}

#[unsafe(no_mangle)]
fn __punctual_board_alarm(time: u64) {
    time::alarm(time);
}

#[unsafe(no_mangle)]
fn __punctual_board_enable(number: u32) {
    interrupt::enable(number);
}

#[unsafe(no_mangle)]
fn __punctual_board_disable(number: u32) {
    interrupt::disable(number);
}

/// # Safety
/// As for [`interrupt::unmask`].
#[unsafe(no_mangle)]
unsafe fn __punctual_board_unmask() {
    // SAFETY: what runs from here on can be interrupted, by this function's contract.
    unsafe { interrupt::unmask() };
}

#[unsafe(no_mangle)]
fn __punctual_board_mask() {
    interrupt::mask();
}

#[unsafe(no_mangle)]
fn __punctual_board_wait() {
    interrupt::wait();
}

#[unsafe(no_mangle)]
fn __punctual_board_memory(layout: Layout) -> Option<NonNull<u8>> {
    memory::take(layout)
}

#[unsafe(no_mangle)]
fn __punctual_board_print(text: &str) {
    // The console does not fail.
    let _ = Console.write_str(text);
}

#[unsafe(no_mangle)]
fn __punctual_board_exit(code: u8) -> ! {
    end::exit(code.into())
}
