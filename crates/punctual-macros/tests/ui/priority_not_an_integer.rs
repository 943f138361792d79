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

    #[task(priority = "2")]
    fn tick(_: tick::Context) {}

    #[task(priority = -1)]
    fn tock(_: tock::Context) {}

    #[task(priority = LEVEL)]
    fn tack(_: tack::Context) {}
}
