#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        #[lock_free]
        count: u32,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local { count: 0 })
    }

    #[task(local = [count])]
    fn tick(_: tick::Context) {}
}
