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

    #[task(capacity = 0)]
    fn tick(_: tick::Context) {}

    #[task(capacity = 1025)]
    fn tock(_: tock::Context) {}
}
