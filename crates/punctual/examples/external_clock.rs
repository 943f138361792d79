//! `clock` locks the grid of a task to another clock than the machine's.
//!
//! `read` passes readings of the clock to its source. The clock is simulated: it runs 50 ppm faster
//! than the machine's, and begins 0.25 ms after it. `punctual::io::clock` reads a PTP hardware
//! clock instead, on a thread of `punctual::background`; a task that exchanges frames by EtherCAT
//! knows the distributed clock anyway.
//!
//! At each release the grid moves by at most 0.1 % of the period, so `control` needs up to 0.5 s
//! until its releases are at the milliseconds of the clock. The report shows drift and phase error.

#[punctual::app]
mod app {
    use punctual::{ClockSource, ExternalClock, Instant};

    static CLOCK: ExternalClock = ExternalClock::new();

    /// Returns the time of the simulated clock, in ns.
    fn external_ns(at: Instant) -> u64 {
        at.as_ticks() + at.as_ticks() / 20_000 + 250_000
    }

    #[shared]
    struct Shared {
        #[lock_free]
        released: u64,
    }

    #[local]
    struct Local {
        source: ClockSource,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { released: 0 }, Local { source: CLOCK.source().expect("there is no other source") })
    }

    #[task(priority = 1, period = 1.millis(), clock = CLOCK, shared = [released])]
    fn control(cx: control::Context) {
        *cx.shared.released = external_ns(cx.released);
    }

    #[task(priority = 1, period = 10.millis(), local = [source, readings: u32 = 0])]
    fn read(cx: read::Context) {
        let now = punctual::now();
        cx.local.source.record(now, external_ns(now)).expect("time advances");
        *cx.local.readings += 1;
        if *cx.local.readings == 100 {
            punctual::shutdown();
        }
    }

    #[shutdown(shared = [released])]
    fn shutdown(cx: shutdown::Context) {
        let after = *cx.shared.released % 1_000_000;
        let error = after.min(1_000_000 - after);
        println!("released within 1 µs of a millisecond of the clock: {}", error < 1_000);
    }
}
