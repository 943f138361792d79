#[punctual::app]
mod app {
    use std::cell::Cell;

    thread_local! {
        static KEPT: Cell<Option<&'static mut u32>> = const { Cell::new(None) };
    }

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        count: u32,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local { count: 0 })
    }

    #[task(local = [count])]
    fn tick(cx: tick::Context) {
        KEPT.set(Some(cx.local.count));
    }
}
