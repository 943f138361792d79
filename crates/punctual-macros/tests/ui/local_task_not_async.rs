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

    #[task]
    fn starts(_: starts::Context) {}

    #[task(local_task)]
    fn works(_: works::Context) {}
}
