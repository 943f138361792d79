#[punctual::app]
mod app {
    #[shared]
    struct Shared {
        count: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { count: 0 }, Local {})
    }

    #[task(priority = 29, shared = [cuont])]
    fn tick(_: tick::Context) {}

    #[task(period = 10, local = [sensor])]
    async fn tock(_: tick::Context) {}
}
