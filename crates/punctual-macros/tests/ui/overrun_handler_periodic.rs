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

    #[task(period = 10.millis(), on_overrun = late)]
    fn tick(_: tick::Context) {}

    #[task(period = 1.secs())]
    fn late(_: late::Context) {}
}
