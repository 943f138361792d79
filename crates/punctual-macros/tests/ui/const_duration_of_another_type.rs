#[punctual::app]
mod app {
    const PERIOD: u64 = 10;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task(period = PERIOD)]
    fn tick(_: tick::Context) {}
}
