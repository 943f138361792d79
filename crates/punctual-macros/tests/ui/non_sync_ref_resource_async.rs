#[punctual::app]
mod app {
    use std::cell::Cell;

    #[shared]
    struct Shared {
        count: Cell<u32>,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { count: Cell::new(0) }, Local {})
    }

    #[task(shared = [&count])]
    async fn waits(cx: waits::Context) {
        std::future::ready(()).await;
        cx.shared.count.set(1);
    }

    #[task(shared = [&count])]
    fn tock(_: tock::Context) {}
}
