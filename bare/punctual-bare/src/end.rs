//! The end of a program, and its replacement by another.

/// Exit code after a panic or a fault, as with an operating system.
pub(crate) const PANICKED: i32 = 101;

/// Ends the program.
///
/// With the feature `semihosting`, the debugger or QEMU receives the code; otherwise the core
/// sleeps forever, with interrupts masked. On a CPU that Linux gave up, Linux receives the code and
/// may take the CPU back.
pub fn exit(code: i32) -> ! {
    #[cfg(feature = "amp")]
    crate::amp::end(code);
    #[cfg(not(feature = "amp"))]
    crate::console::flush();
    #[cfg(all(feature = "semihosting", not(feature = "amp")))]
    semihosting::process::exit(code);
    #[cfg(not(any(feature = "semihosting", feature = "amp")))]
    {
        let _ = code;
        crate::arch::halt()
    }
}

/// Replacement of the running program by another.
#[cfg(not(feature = "amp"))]
pub(crate) mod replacement {
    use core::alloc::Layout;

    use crate::{interrupt, layout, memory};

    /// Room for the code that moves a program, in bytes.
    const MOVER: usize = 256;

    unsafe extern "C" {
        fn __punctual_bare_leave(
            program: *const u8,
            size: usize,
            place: usize,
            mover: *mut u8,
            end: usize,
        ) -> !;
    }

    /// Enters another program in the place of this one, in the state in which the firmware does:
    /// with the MMU and the caches off and interrupts masked.
    ///
    /// `program` is its image, whose size is a multiple of 16.
    ///
    /// # Panics
    /// If it is empty or of another size, or if there is no memory left.
    ///
    /// # Safety
    /// `program` is an image for this board and lies above this program. No other core runs.
    pub unsafe fn enter(program: &mut [u8]) -> ! {
        assert!(
            !program.is_empty() && program.len().is_multiple_of(16),
            "{} bytes are no image",
            program.len()
        );
        interrupt::mask();
        let mover = memory::take(Layout::from_size_align(MOVER, 64).expect("it is a power of two"));
        let mover = mover.expect("there are 256 bytes of memory").as_ptr();
        let end = mover.addr() + MOVER;
        assert!(
            layout::image_start() + program.len() <= mover.addr(),
            "the program would overwrite what moves it"
        );
        // SAFETY: interrupts are masked, no part of this program is used after this, and the mover
        // lies above both programs.
        unsafe { __punctual_bare_leave(program.as_ptr(), program.len(), layout::image_start(), mover, end) }
    }
}
