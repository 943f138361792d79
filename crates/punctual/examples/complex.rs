//! Four levels and three ceilings, with every rule at work.
//!
//! `s2`, `s3` and `s4` are named after their ceilings. The order follows from these rules:
//!
//! * a spawn above the partition's level runs at once: `t2` always does, except inside `s4`;
//! * inside `s3`, both `t0` and `t1` wait; when it is released `t1` goes first, because it is
//!   higher;
//! * inside `s2`, only `t0` waits;
//! * inside `s4`, `t2` waits; when it is released, `t2` runs before `t1` continues;
//! * `t0` has one slot, so while one job waits, a spawn by `t1` is rejected, like pending an
//!   interrupt twice.
//!
//! one-cpu: every line is about which job runs before which

#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        s2: u32,
        s3: u32,
        s4: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        println!("init");
        (Shared { s2: 0, s3: 0, s4: 0 }, Local {})
    }

    #[idle(shared = [s2, s3])]
    fn idle(mut cx: idle::Context) {
        println!("idle starts");
        t2::spawn().unwrap();
        cx.shared.s3.lock(|_| {
            println!("idle enters s3");
            t0::spawn().unwrap();
            t1::spawn().unwrap();
            t2::spawn().unwrap();
            println!("idle leaves s3");
        });
        println!("back in idle");
        cx.shared.s2.lock(|_| {
            println!("idle enters s2");
            t0::spawn().unwrap();
            t1::spawn().unwrap();
            t2::spawn().unwrap();
            println!("idle leaves s2");
        });
        println!("idle ends");
        punctual::shutdown();
    }

    #[task(priority = 2, shared = [s2, s3], local = [runs: u32 = 0])]
    fn t0(cx: t0::Context) {
        *cx.local.runs += 1;
        println!("  t0 run {}", cx.local.runs);
    }

    #[task(priority = 3, shared = [s3, s4], local = [runs: u32 = 0])]
    fn t1(mut cx: t1::Context) {
        *cx.local.runs += 1;
        println!("    t1 run {} starts", cx.local.runs);
        cx.shared.s4.lock(|s4| {
            println!("    t1 enters s4 = {s4}");
            println!("    t1 spawns t0: {:?}", t0::spawn());
            println!("    t1 spawns t2: {:?}", t2::spawn());
            println!("    t1 leaves s4 = {s4}");
        });
        println!("    t1 ends");
    }

    #[task(priority = 4, shared = [s4], local = [runs: u32 = 0])]
    fn t2(mut cx: t2::Context) {
        *cx.local.runs += 1;
        println!("      t2 run {} starts", cx.local.runs);
        cx.shared.s4.lock(|s4| {
            *s4 += 1;
            println!("      t2 makes s4 = {s4}");
        });
        println!("      t2 ends");
    }
}
