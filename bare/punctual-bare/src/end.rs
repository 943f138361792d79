//! The end of a program.

/// How a program ends that has panicked or hit a fault, as one with an operating system does.
pub(crate) const PANICKED: i32 = 101;

/// Ends the program.
///
/// With the feature `semihosting` the debugger, or QEMU, is told the code; otherwise the core sleeps for good, with
/// interrupts masked. Beside Linux that is told the code, and may take the CPU back.
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
