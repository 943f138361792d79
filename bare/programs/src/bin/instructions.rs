//! Counts instructions between two points of a program, without those of the measurement itself.
//!
//! unmonitored: as an app is that measures nothing
//! needs: virt: the counts are those of its processors, and interrupts are raised by hand
#![no_std]
#![no_main]

extern crate punctual_bare;

#[punctual::app(report = "never")]
mod app {
    use core::sync::atomic::{AtomicU32, Ordering};

    use programs::cycles;
    use punctual::prelude::*;
    use punctual_bare::{interrupt, println};

    /// The counter when a job started.
    static BEGUN: AtomicU32 = AtomicU32::new(0);
    static NEXT_BEGUN: AtomicU32 = AtomicU32::new(0);

    /// Measurements of `low`. Each is stored in memory at once, so that the measured code does not
    /// have to preserve it.
    static SPAWNED_HIGHER: AtomicU32 = AtomicU32::new(0);
    static LOCKED: AtomicU32 = AtomicU32::new(0);
    static LOCKED_ALONE: AtomicU32 = AtomicU32::new(0);
    static SPAWNED_SAME: AtomicU32 = AtomicU32::new(0);

    #[shared]
    struct Shared {
        with_higher: u32,
        of_one_level: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        cycles::enable();
        (Shared { with_higher: 0, of_one_level: 0 }, Local {})
    }

    /// Returns the number of instructions for reading the counter.
    fn overhead() -> u32 {
        let begin = cycles::count();
        cycles::since(begin)
    }

    #[idle]
    fn idle(_: idle::Context) {
        // Twice, because the first time may take longer.
        for _ in 0..2 {
            low::spawn().expect("it is free");
        }
        interrupted();
        timed();
        punctual::shutdown();
    }

    fn interrupted() {
        let mut took = 0;
        for _ in 0..2 {
            let before = cycles::count();
            interrupt::pend(interrupt::RTC);
            took = BEGUN.load(Ordering::Relaxed).wrapping_sub(before);
        }
        println!("interrupt to first instruction of bound task: {took}");
    }

    fn timed() {
        let mut took = 0;
        for _ in 0..2 {
            // Offset between nanoseconds since power-on and the cycle counter. In QEMU, an
            // instruction takes one nanosecond. The timer counts in steps of 16 ns.
            let offset = (0..64)
                .map(|_| cycles::timer_and_count())
                .map(|(timer, count)| count.wrapping_sub(16 * timer as u32).wrapping_sub(1))
                .min_by(|one, other| (one.wrapping_sub(*other) as i32).cmp(&0))
                .expect("there are some");
            // Halfway between two counts, so that the timer expires at the second one.
            let due = (punctual::now().as_ticks() + 20_000) / 16 * 16 + 8;
            BEGUN.store(0, Ordering::Relaxed);
            expired::spawn_at(punctual::Instant::from_ticks(due)).expect("it is ahead");
            while BEGUN.load(Ordering::Relaxed) == 0 {}
            took =
                BEGUN.load(Ordering::Relaxed).wrapping_sub((due as u32).wrapping_add(8)).wrapping_sub(offset);
        }
        println!("timer expiry to first instruction: {took}");
    }

    #[task(priority = 1, shared = [with_higher, of_one_level], local = [round: u32 = 0])]
    fn low(mut cx: low::Context) {
        let begin = cycles::count();
        high::spawn().expect("it is free");
        SPAWNED_HIGHER.store(cycles::since(begin), Ordering::Relaxed);

        let begin = cycles::count();
        cx.shared.with_higher.lock(|value| *value);
        LOCKED.store(cycles::since(begin), Ordering::Relaxed);

        let begin = cycles::count();
        cx.shared.of_one_level.lock(|value| *value);
        LOCKED_ALONE.store(cycles::since(begin), Ordering::Relaxed);

        let begin = cycles::count();
        same::spawn().expect("it is free");
        SPAWNED_SAME.store(cycles::since(begin), Ordering::Relaxed);

        *cx.local.round += 1;
        next::spawn(*cx.local.round).expect("it is free");
        if *cx.local.round == 2 {
            print();
        }
    }

    #[inline(never)]
    fn print() {
        for (what, took) in [
            ("spawn, run and return of a higher task", &SPAWNED_HIGHER),
            ("lock and unlock", &LOCKED),
            ("lock and unlock, resource of one level", &LOCKED_ALONE),
        ] {
            println!("{what}: {}", took.load(Ordering::Relaxed) - overhead());
        }
    }

    #[task(priority = 1, shared = [of_one_level])]
    fn same(_: same::Context) {
        BEGUN.store(cycles::count(), Ordering::Relaxed);
    }

    /// Runs after `same` has returned.
    #[task(priority = 1)]
    fn next(_: next::Context, round: u32) {
        NEXT_BEGUN.store(cycles::count(), Ordering::Relaxed);
        if round == 2 {
            let ran = NEXT_BEGUN.load(Ordering::Relaxed).wrapping_sub(BEGUN.load(Ordering::Relaxed));
            let spawned = SPAWNED_SAME.load(Ordering::Relaxed) - overhead();
            println!("spawn, run and return of the same level: {}", spawned + ran);
        }
    }

    #[task(priority = 2, shared = [with_higher])]
    fn high(_: high::Context) {}

    #[task(priority = 3, binds = RTC)]
    fn line(_: line::Context) {
        BEGUN.store(cycles::count(), Ordering::Relaxed);
    }

    #[task(priority = 3)]
    fn expired(_: expired::Context) {
        BEGUN.store(cycles::count(), Ordering::Relaxed);
    }
}
