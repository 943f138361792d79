#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task(period = 10.millis(), deadline = 11.millis())]
    fn tick(_: tick::Context) {}
}
