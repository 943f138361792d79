//! A time-out is a timed job that is canceled if the awaited event occurs in time.
//!
//! The first request is answered before its time-out, which is canceled and so never runs. The
//! second is not answered, and the time-out runs instead.

#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        #[lock_free]
        pending: Option<timeout::SpawnHandle>,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        request::spawn(1).unwrap();
        (Shared { pending: None }, Local {})
    }

    #[task(shared = [pending])]
    fn request(cx: request::Context, n: u32) {
        println!("request {n}");
        *cx.shared.pending = timeout::spawn_after(200.millis(), n).ok();
        if n == 1 {
            answer::spawn_after(10.millis(), n).unwrap();
        }
    }

    #[task(shared = [pending])]
    fn answer(cx: answer::Context, n: u32) {
        let cancelled = cx.shared.pending.take().map(timeout::SpawnHandle::cancel);
        println!("answer {n}, timeout cancelled: {cancelled:?}");
        request::spawn(n + 1).unwrap();
    }

    #[task(shared = [pending])]
    fn timeout(cx: timeout::Context, n: u32) {
        *cx.shared.pending = None;
        println!("request {n} timed out");
        punctual::shutdown();
    }
}
