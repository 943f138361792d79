//! The functions that `punctual` requires of a board, by their link names.

use core::alloc::Layout;
use core::fmt::Write;
use core::mem;
use core::ptr::{self, NonNull};
#[cfg(not(feature = "amp"))]
use core::sync::atomic::AtomicBool;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::console::Console;
use crate::interrupt::{self, Handler};
use crate::{arch, cores, end, memory, time};

/// Function that returns the level of this core: null, or a `fn() -> Option<u8>`.
static LEVEL: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// Returns the level at which this core runs its app, if it runs one.
pub(crate) fn level() -> Option<u8> {
    let level = LEVEL.load(Ordering::Relaxed);
    // SAFETY: the pointer is not null, so `__punctual_board_explain` has stored it.
    (!level.is_null()).then(|| unsafe { mem::transmute::<*mut (), fn() -> Option<u8>>(level) })?()
}

#[unsafe(no_mangle)]
fn __punctual_board_explain(level: fn() -> Option<u8>) {
    LEVEL.store(level as *mut (), Ordering::Relaxed);
}

#[unsafe(no_mangle)]
fn __punctual_board_handle(timer: fn(), interrupt: fn(u32), after: fn()) {
    arch::mask_interrupts();
    interrupt::handle(&Handler { timer, interrupt, after });
    time::enable_alarm();
}

/// Enables the timer's interrupt on a core other than the one that has called
/// [`__punctual_board_handle`].
#[unsafe(no_mangle)]
fn __punctual_board_join() {
    time::enable_alarm();
}

#[unsafe(no_mangle)]
fn __punctual_board_core() -> u32 {
    arch::core()
}

#[unsafe(no_mangle)]
fn __punctual_board_own() -> *const () {
    arch::own()
}

#[unsafe(no_mangle)]
fn __punctual_board_set_own(own: *const ()) {
    arch::set_own(own);
}

#[unsafe(no_mangle)]
fn __punctual_board_start(core: u32, work: fn()) -> bool {
    cores::start(core, work)
}

#[unsafe(no_mangle)]
fn __punctual_board_ring(core: u32) {
    cores::ring(core);
}

#[unsafe(no_mangle)]
fn __punctual_board_bell() -> u32 {
    cores::BELL
}

#[unsafe(no_mangle)]
fn __punctual_board_rung() {
    cores::rung();
}

#[unsafe(no_mangle)]
fn __punctual_board_route(number: u32, core: u32) -> bool {
    cores::route(number, core)
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
    // SAFETY: the code from here on can be interrupted, by this function's contract.
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

/// Calls a function with interrupts masked.
type Uninterrupted = fn(&mut dyn FnMut());

#[unsafe(no_mangle)]
fn __punctual_board_figures() -> Option<(NonNull<u8>, Uninterrupted)> {
    #[cfg(feature = "amp")]
    return Some((crate::amp::figures()?, crate::amp::uninterrupted));
    #[cfg(not(feature = "amp"))]
    None
}

/// Set when the app prints: a report, or an error at its start.
#[cfg(not(feature = "amp"))]
static HAS_PRINTED: AtomicBool = AtomicBool::new(false);

#[unsafe(no_mangle)]
fn __punctual_board_print(text: &str) {
    #[cfg(not(feature = "amp"))]
    HAS_PRINTED.store(true, Ordering::Relaxed);
    // The console does not fail.
    let _ = Console.write_str(text);
}

#[unsafe(no_mangle)]
fn __punctual_board_exit(code: u8) -> ! {
    // The times of a report depend on these.
    #[cfg(not(feature = "amp"))]
    if HAS_PRINTED.load(Ordering::Relaxed) {
        crate::println!("board: {}", crate::board::Conditions);
    }
    end::exit(code.into())
}
