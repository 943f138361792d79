//! What `punctual` asks of a board, by the names that it gives these functions.

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::fmt::Write;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use crate::console::Console;
use crate::interrupt::{self, Handler};
use crate::{arch, end, memory, time};

/// What an app has called on interrupts.
struct Callbacks(UnsafeCell<MaybeUninit<Handler>>);

// SAFETY: written with interrupts masked, on the one core that has a handler, and otherwise only read, by that handler.
unsafe impl Sync for Callbacks {}

static CALLBACKS: Callbacks = Callbacks(UnsafeCell::new(MaybeUninit::uninit()));

#[unsafe(no_mangle)]
fn __punctual_board_handle(timer: fn(), interrupt: fn(u32), after: fn()) {
    arch::mask_interrupts();
    // SAFETY: interrupts are masked, and the caller is no handler, by the contract of this name, so nothing reads it. The
    // reference lasts until the next call.
    let handler: &'static Handler =
        unsafe { (*CALLBACKS.0.get()).write(Handler { timer, interrupt, after }) };
    interrupt::handle(handler);
    time::enable_alarm();
}

#[unsafe(no_mangle)]
fn __punctual_board_core() -> u32 {
    arch::core()
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
