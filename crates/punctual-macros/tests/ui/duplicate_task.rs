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

    #[cfg(unix)]
    #[task]
    fn tick(_: tick::Context) {}

    #[cfg(not(unix))]
    #[task]
    fn tick(_: tick::Context) {}
}
