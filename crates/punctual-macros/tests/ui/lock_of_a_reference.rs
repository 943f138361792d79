#[punctual::app]
mod app {
    use std::sync::Mutex;

    use punctual::prelude::*;

    #[shared]
    struct Shared {
        gain: f32,
        log: Mutex<u32>,
        #[lock_free]
        count: u8,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { gain: 1.0, log: Mutex::new(0), count: 0 }, Local {})
    }

    #[task(priority = 2, shared = [&gain, &log, count])]
    fn control(mut cx: control::Context) {
        cx.shared.gain.lock(|gain| *gain);
        cx.shared.count.lock(|count| *count += 1);
        drop(cx.shared.log.lock());
    }
}
