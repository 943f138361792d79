#[punctual::app]
mod app {
    #[shared]
    struct Shared {
        #[cfg(not(unix))]
        port: u32,
        #[cfg(unix)]
        other: u32,
    }

    #[local]
    struct Local {}

    #[cfg(unix)]
    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { other: 0 }, Local {})
    }

    #[task(shared = [port])]
    fn control(_: control::Context) {}
}
