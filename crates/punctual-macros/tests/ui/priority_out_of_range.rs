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

    #[task(priority = 0)]
    fn tick(_: tick::Context) {}

    #[task(priority = 29)]
    fn tock(_: tock::Context) {}
}
