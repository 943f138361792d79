//! The end of a program.

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
