//! The end of a program.

use crate::console;

/// How a program ends that has panicked or hit a fault, as one with an operating system does.
pub(crate) const PANICKED: i32 = 101;

/// Ends the program.
///
/// With the feature `semihosting` the debugger, or QEMU, is told the code; otherwise the core sleeps for good, with
/// interrupts masked.
pub fn exit(code: i32) -> ! {
    console::flush();
    #[cfg(feature = "semihosting")]
    semihosting::process::exit(code);
    #[cfg(not(feature = "semihosting"))]
    {
        let _ = code;
        crate::arch::halt()
    }
}
