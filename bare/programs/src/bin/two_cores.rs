//! Two partitions, each on its own core: spawns in both directions, a task of the second released
//! by the clock, a resource that both lock, and an orderly end of both.
//!
//! emulator: -smp 4
#![no_std]
#![no_main]

extern crate punctual_bare;

#[punctual::app(report = "never", partitions = [first, second])]
mod app {
    use core::sync::atomic::{AtomicU32, Ordering};

    use punctual::prelude::*;
    use punctual_bare::{cores, println};

    const ROUNDS: u32 = 3;
    /// Number of locks per core of a resource that both use.
    const LOCKS: u32 = 2_000;

    /// Bit set of the cores that have run jobs of each partition.
    static SEEN: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

    fn here(partition: usize) {
        SEEN[partition].fetch_or(1 << cores::this(), Ordering::Relaxed);
    }

    #[shared]
    struct Shared {
        /// Two numbers that are equal outside of critical sections.
        pair: (u32, u32),
    }

    #[local]
    struct Local {
        ticks: u32,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        // It waits until `init` has completed on both cores.
        ping::spawn(1).expect("nothing else spawns it");
        (Shared { pair: (0, 0) }, Local { ticks: 0 })
    }

    fn step(pair: &mut (u32, u32)) {
        assert_eq!(pair.0, pair.1, "another job is in the critical section");
        pair.0 += 1;
        // Long enough for the other core to contend.
        core::hint::black_box(&mut *pair);
        pair.1 += 1;
    }

    /// Runs on the second core, released by the first.
    #[task(priority = 2, core = second)]
    fn ping(_: ping::Context, round: u32) {
        here(1);
        println!("ping {round}");
        pong::spawn(round).expect("it has run");
    }

    /// Runs on the first core, released by the second.
    #[task(priority = 2, core = first)]
    fn pong(_: pong::Context, round: u32) {
        here(0);
        println!("pong {round}");
        match round {
            ROUNDS => {
                one::spawn().expect("nothing else spawns it");
                two::spawn().expect("nothing else spawns it");
            }
            _ => ping::spawn(round + 1).expect("it has run"),
        }
    }

    /// Runs on the first core, while `two` does the same on the second.
    #[task(priority = 1, core = first, shared = [pair])]
    fn one(mut cx: one::Context) {
        (0..LOCKS).for_each(|_| cx.shared.pair.lock(step));
    }

    #[task(priority = 1, core = second, shared = [pair])]
    fn two(mut cx: two::Context) {
        (0..LOCKS).for_each(|_| cx.shared.pair.lock(step));
    }

    /// Released by the timer of the second core.
    #[task(priority = 3, core = second, period = 1.millis(), local = [ticks], shared = [pair])]
    fn tick(mut cx: tick::Context) {
        here(1);
        *cx.local.ticks += 1;
        if *cx.local.ticks == 20 {
            // Ends now, or after both have completed.
            ends::spawn().expect("it has run");
        }
        cx.shared.pair.lock(|pair| assert_eq!(pair.0, pair.1));
    }

    /// Runs on the first core. Arms itself until both have completed, and then ends both.
    #[task(priority = 3, core = first, shared = [pair])]
    fn ends(mut cx: ends::Context) {
        let locks = cx.shared.pair.lock(|pair| pair.0);
        if locks < 2 * LOCKS {
            ends::spawn_after(1.millis()).expect("it has run");
            return;
        }
        punctual::shutdown();
    }

    #[shutdown(shared = [pair])]
    fn shutdown(cx: shutdown::Context) {
        println!("{} critical sections", cx.shared.pair.0);
        println!("the first partition was on {:#b}", SEEN[0].load(Ordering::Relaxed));
        println!("the second partition was on {:#b}", SEEN[1].load(Ordering::Relaxed));
    }
}
