//! Unexpected interrupts: a spurious one, one that no task binds, and one whose job panics.
//!
//! exit: 101
//! needs: gic: it raises interrupts by hand
//! sample: one board
#![no_std]
#![no_main]

extern crate punctual_bare;

#[punctual::app(report = "never")]
mod app {
    use core::sync::atomic::{AtomicU32, Ordering};

    use punctual_bare::{interrupt, println};

    static RUN: AtomicU32 = AtomicU32::new(0);

    #[cfg(not(feature = "raspberry-pi"))]
    use interrupt::GPIO as UNBOUND;
    #[cfg(feature = "raspberry-pi")]
    use interrupt::SPI0 as UNBOUND;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        interrupt::enable(UNBOUND);
        (Shared {}, Local {})
    }

    unsafe extern "C" {
        /// The entry point of the vectors.
        fn __punctual_bare_interrupt();
    }

    #[idle]
    fn idle(_: idle::Context) {
        interrupt::mask();
        // SAFETY: called with interrupts masked, as by the vectors; follows the calling convention.
        unsafe { __punctual_bare_interrupt() };
        // SAFETY: they were unmasked before.
        unsafe { interrupt::unmask() };
        println!("an interrupt that is lowered before it is acknowledged, and it goes on");
        interrupt::pend(UNBOUND);
        println!("an interrupt that no task binds, and it goes on");
        // The interrupt is disabled by now, so it stays pending.
        interrupt::pend(UNBOUND);
        interrupt::disable(interrupt::UART0);
        interrupt::pend(interrupt::UART0);
        interrupt::enable(interrupt::UART0);
        println!("jobs: {}", RUN.load(Ordering::Relaxed));
        interrupt::pend(interrupt::UART0);
        println!("not reached");
        punctual::shutdown();
    }

    #[task(binds = UART0)]
    fn line(_: line::Context) {
        let run = RUN.load(Ordering::Relaxed) + 1;
        RUN.store(run, Ordering::Relaxed);
        assert!(run < 2, "a job of an interrupt panics");
    }
}
