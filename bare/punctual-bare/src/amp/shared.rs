//! The memory that Linux and the image share. The layout is that of `punctual_cpu.h` in
//! `punctual-isolate`, whose tests compare them.

use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

use punctual_sync::shared::Arena;

use super::layout;

/// The structure at the start of the block.
#[repr(C)]
pub(super) struct Shared {
    // Written by the module before the start.
    pub(super) base: u64,
    pub(super) distributor: u64,
    pub(super) interface: u64,
    pub(super) version: u32,
    pub(super) cpu: u32,
    pub(super) gic: u32,
    pub(super) smc: u32,
    pub(super) doorbell: u32,
    pub(super) bell: u32,
    pub(super) patience_ms: u32,
    pub(super) grace_ms: u32,
    reserved0: u64,
    // Written by the module while the image runs.
    pub(super) stop: AtomicU32,
    pub(super) ringing: AtomicU32,
    pub(super) linux_beat: AtomicU64,
    reserved1: [u64; 6],
    // Written by the image.
    pub(super) state: AtomicU32,
    pub(super) code: AtomicI32,
    pub(super) beat: AtomicU64,
    pub(super) written: AtomicU64,
    pub(super) rings: AtomicU64,
    reserved2: [u64; 4],
}

const _: () = assert!(size_of::<Shared>() == 192);

/// Values of [`Shared::state`].
pub(super) const RUNS: u32 = 1;
pub(super) const ENDED: u32 = 2;
pub(super) const FAULTED: u32 = 3;

/// Offset and size of the text ring.
const TEXT: usize = 0x1000;
const TEXT_SIZE: u64 = 0xF000;

/// Offset of the figures of an app: `punctual_core::remote`.
const FIGURES: usize = 0x1_0000;

/// Offset of the memory for programs, and its end.
const USER: usize = 0x5_0000;
const USER_END: usize = 0x8_0000;

/// Returns the shared structure.
pub(super) fn shared() -> &'static Shared {
    // SAFETY: the block starts with the structure, is mapped as long as the image runs, and was
    // filled in before the start. Fields that the other side writes during the run are atomic here,
    // and zero is a valid value of every field.
    unsafe { &*(layout::block() as *const Shared) }
}

/// Adds text to the ring without waiting. Linux misses text that it did not read in time, and
/// detects the loss by the count.
pub(super) fn write(text: &[u8]) {
    let written = &shared().written;
    // Keeps a job that interrupts this from writing to the same place.
    let masked = crate::arch::mask_interrupts_for_a_while();
    let mut at = written.load(Ordering::Relaxed);
    for &byte in text {
        let place = (layout::block() + TEXT + (at % TEXT_SIZE) as usize) as *const AtomicU8;
        // SAFETY: the address is within the ring, which is mapped and which both sides access
        // atomically.
        unsafe { (*place).store(byte, Ordering::Relaxed) };
        at += 1;
    }
    // Release: a reader of the count sees the bytes.
    written.store(at, Ordering::Release);
    crate::arch::restore_interrupts(masked);
}

/// Reports the end of the run to Linux. After it returns, Linux rings no more, and its last ring
/// has arrived.
pub(super) fn end(state: u32, code: i32) {
    let shared = shared();
    shared.code.store(code, Ordering::Relaxed);
    shared.state.store(state, Ordering::Release);
    // Pairs with the barrier in the module's `ring`: either the module sees that this ends, or this
    // sees the module ring.
    fence(Ordering::SeqCst);
    while shared.ringing.load(Ordering::Acquire) != 0 {
        core::hint::spin_loop();
    }
}

/// Returns the memory for the figures of an app.
pub(crate) fn figures() -> Option<NonNull<u8>> {
    NonNull::new((layout::block() + FIGURES) as *mut u8)
}

/// Memory that Linux maps as well, for data that a program shares. Offsets are the same as from the
/// start of the mapping there.
///
/// The memory is zero at the start of the first program that uses the device while it is open. Any
/// process with the device open may write there at any time, so only atomic accesses are sound.
#[must_use]
pub fn memory() -> *mut [u8] {
    ptr::slice_from_raw_parts_mut((layout::block() + USER) as *mut u8, USER_END - USER)
}

/// The same memory, for structures that `punctual::remote::Remote` of a program on Linux attaches
/// to; `None` from the second call on.
#[must_use]
pub fn arena() -> Option<Arena> {
    static IS_TAKEN: AtomicBool = AtomicBool::new(false);
    if IS_TAKEN.swap(true, Ordering::Relaxed) {
        return None;
    }
    let memory = memory();
    // SAFETY: the memory is valid as long as the program runs, and this is its one arena that makes
    // structures. The module zeroes it when the device is opened, and the loader starts one program
    // each time.
    Some(unsafe { Arena::new(memory.cast(), memory.len()) })
}

/// Returns whether Linux asks the program to end. An app is asked by an interrupt; this function is
/// for programs that mask interrupts.
#[must_use]
pub fn is_to_end() -> bool {
    shared().stop.load(Ordering::Acquire) != 0
}
