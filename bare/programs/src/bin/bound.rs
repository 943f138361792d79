//! Interrupts of two levels that are raised in idle, in jobs of each other and in critical
//! sections, and an interrupt that raises itself repeatedly. Jobs must run at once or as soon as
//! permitted, the higher first, and preserve the FPU's registers.
//!
//! needs: virt: it raises the interrupts of these devices by hand
#![no_std]
#![no_main]

extern crate punctual_bare;

#[punctual::app(report = "never")]
mod app {
    use core::hint::black_box;
    use core::sync::atomic::{AtomicU32, Ordering};

    use punctual::prelude::*;
    use punctual_bare::interrupt::{self, GPIO, RTC};
    use punctual_bare::println;

    const ROUNDS: u32 = 5_000;

    /// If nonzero, jobs print, and the lower one raises the higher one.
    static SHOWN: AtomicU32 = AtomicU32::new(1);
    /// Number of times that the lower one raises itself again.
    static AGAIN: AtomicU32 = AtomicU32::new(0);
    static JOBS: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

    #[shared]
    struct Shared {
        /// Two numbers that are equal outside of critical sections.
        pair: (u32, u32),
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { pair: (0, 0) }, Local {})
    }

    fn step(pair: &mut (u32, u32)) {
        assert_eq!(pair.0, pair.1, "another job is in the critical section");
        pair.0 += 1;
        pair.1 += 1;
    }

    /// Keeps registers of the FPU in use.
    fn compute(seed: f64) -> f64 {
        let mut values = [seed; 12];
        for round in 0..values.len() {
            values[round] = values[(round + 5) % 12] * 0.75 + black_box(round as f64);
        }
        values.iter().sum()
    }

    #[idle(shared = [pair])]
    fn idle(mut cx: idle::Context) {
        println!("in idle");
        interrupt::pend(RTC);
        println!("in a critical section");
        cx.shared.pair.lock(|pair| {
            step(pair);
            interrupt::pend(RTC);
            interrupt::pend(GPIO);
            println!("  both are pending");
        });
        SHOWN.store(0, Ordering::Relaxed);
        AGAIN.store(1_000, Ordering::Relaxed);
        let before = JOBS[0].load(Ordering::Relaxed);
        interrupt::pend(RTC);
        println!("again and again: {}", JOBS[0].load(Ordering::Relaxed) - before);

        let before = [0, 1].map(|task: usize| JOBS[task].load(Ordering::Relaxed));
        let (expected, mut wrong) = (compute(2.5), 0);
        for round in 0..ROUNDS {
            let which = if round % 3 == 0 { GPIO } else { RTC };
            let seed = black_box(2.5);
            if round % 2 == 0 {
                cx.shared.pair.lock(|pair| {
                    interrupt::pend(which);
                    step(pair);
                });
            }
            interrupt::pend(which);
            wrong += u32::from(compute(seed) != expected);
        }
        let [low, high] = [0, 1].map(|task| JOBS[task].load(Ordering::Relaxed) - before[task]);
        println!("lost: {}, computed wrongly: {wrong}", ROUNDS * 3 / 2 - low - high);
        punctual::shutdown();
    }

    #[task(priority = 2, binds = RTC, shared = [pair])]
    fn low(mut cx: low::Context) {
        let shown = SHOWN.load(Ordering::Relaxed) != 0;
        JOBS[0].fetch_add(1, Ordering::Relaxed);
        cx.shared.pair.lock(step);
        black_box(compute(1.5));
        if shown {
            println!("  low begins");
            interrupt::pend(GPIO);
            println!("  low ends");
        }
        let again = AGAIN.load(Ordering::Relaxed);
        if again > 1 {
            AGAIN.store(again - 1, Ordering::Relaxed);
            interrupt::pend(RTC);
        }
    }

    #[task(priority = 4, binds = GPIO, shared = [pair])]
    fn high(mut cx: high::Context) {
        JOBS[1].fetch_add(1, Ordering::Relaxed);
        cx.shared.pair.lock(step);
        black_box(compute(0.5));
        if SHOWN.load(Ordering::Relaxed) != 0 {
            println!("    high");
        }
    }
}
