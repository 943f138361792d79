#[punctual::app]
mod app {
    fn send<T: Send>(_: T) {}

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task]
    fn tick(cx: tick::Context) {
        send(cx);
    }
}
