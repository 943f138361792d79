#[punctual::app]
mod app {
    #[shared]
    struct Shared {
        #[lock_free]
        value: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { value: 0 }, Local {})
    }

    #[task(shared = [value])]
    async fn tick(_: tick::Context) {}
}
