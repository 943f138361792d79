//! A function generic over [`Mutex`](punctual::Mutex) takes the resource of any task.
//!
//! In `low` the lock raises the level; in `high`, which is at the ceiling, it costs nothing;
//! `advance` is the same for both. `high` preempts `low` between its two calls. The sum does not
//! depend on the order.

#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        total: u32,
    }

    #[local]
    struct Local {}

    fn advance(who: &str, step: &mut u32, total: &mut impl Mutex<T = u32>) {
        *step += 1;
        total.lock(|total| *total += *step);
        println!("{who} has added {step}");
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        low::spawn().unwrap();
        (Shared { total: 0 }, Local {})
    }

    #[task(priority = 1, shared = [total], local = [step: u32 = 0])]
    fn low(mut cx: low::Context) {
        advance("low", cx.local.step, &mut cx.shared.total);
        high::spawn().unwrap();
        advance("low", cx.local.step, &mut cx.shared.total);
        punctual::shutdown();
    }

    #[task(priority = 2, shared = [total], local = [step: u32 = 10])]
    fn high(mut cx: high::Context) {
        advance("high", cx.local.step, &mut cx.shared.total);
    }

    #[shutdown(shared = [total])]
    fn shutdown(cx: shutdown::Context) {
        println!("in all: {}", cx.shared.total);
    }
}
