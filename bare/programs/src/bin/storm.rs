//! The timer interrupts locks, spawns and the dispatcher at as many points as possible. No job may
//! get lost, and no resource may be shared.
#![no_std]
#![no_main]

#[punctual::app(report = "never")]
mod app {
    use core::sync::atomic::{AtomicU32, Ordering};

    use punctual::prelude::*;
    use punctual_bare::println;

    /// Accepted spawns of each of the two tasks, and their completed jobs.
    static SPAWNED: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];
    static RUN: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

    const ROUNDS: u32 = 20_000;

    #[shared]
    struct Shared {
        /// Two numbers that are equal outside of critical sections.
        pair: (u32, u32),
    }

    #[local]
    struct Local {
        phase: u64,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { pair: (0, 0) }, Local { phase: 0 })
    }

    /// Works without a pause, so that the timer always interrupts something.
    #[idle(shared = [pair])]
    fn idle(mut cx: idle::Context) {
        for _ in 0..ROUNDS {
            cx.shared.pair.lock(step);
            SPAWNED[0].fetch_add(u32::from(low::spawn().is_ok()), Ordering::Relaxed);
        }
        punctual::shutdown();
    }

    fn step(pair: &mut (u32, u32)) {
        assert_eq!(pair.0, pair.1, "another job is in the critical section");
        pair.0 += 1;
        // Long enough for an occasional interrupt.
        for i in 0..8 {
            core::hint::black_box(i);
        }
        pair.1 += 1;
    }

    #[task(priority = 1, capacity = 4, shared = [pair])]
    fn low(mut cx: low::Context) {
        RUN[0].fetch_add(1, Ordering::Relaxed);
        cx.shared.pair.lock(step);
        SPAWNED[1].fetch_add(u32::from(high::spawn().is_ok()), Ordering::Relaxed);
    }

    /// Runs every 20 µs, and once more a little later each time, at any instruction of the
    /// interrupted code.
    #[task(priority = 3, period = 20.micros(), local = [phase], shared = [pair])]
    fn tick(mut cx: tick::Context) {
        cx.shared.pair.lock(step);
        *cx.local.phase = (*cx.local.phase + 17) % 9_973;
        // Rejected if the last one has not run yet.
        let _ = shifted::spawn_after(cx.local.phase.nanos());
        SPAWNED[1].fetch_add(u32::from(high::spawn().is_ok()), Ordering::Relaxed);
    }

    #[task(priority = 4, shared = [pair])]
    fn shifted(mut cx: shifted::Context) {
        cx.shared.pair.lock(step);
        SPAWNED[0].fetch_add(u32::from(low::spawn().is_ok()), Ordering::Relaxed);
    }

    #[task(priority = 2, capacity = 2, shared = [pair])]
    fn high(mut cx: high::Context) {
        RUN[1].fetch_add(1, Ordering::Relaxed);
        cx.shared.pair.lock(step);
    }

    #[shutdown(shared = [pair])]
    fn shutdown(cx: shutdown::Context) {
        let [low, high] = [0, 1].map(|task| {
            let (spawned, run) = (SPAWNED[task].load(Ordering::Relaxed), RUN[task].load(Ordering::Relaxed));
            println!("many: {}, lost: {}", run > ROUNDS, spawned - run);
            run
        });
        let steps = cx.shared.pair.0;
        println!(
            "steps at both levels and more: {}, equal: {}",
            steps > low + high,
            steps == cx.shared.pair.1
        );
    }
}
