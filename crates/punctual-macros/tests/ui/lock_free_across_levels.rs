#[punctual::app]
mod app {
    #[shared]
    struct Shared {
        #[lock_free]
        count: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { count: 0 }, Local {})
    }

    #[task(priority = 1, shared = [count])]
    fn tick(_: tick::Context) {}

    #[task(priority = 2, shared = [count])]
    fn tock(_: tock::Context) {}
}
