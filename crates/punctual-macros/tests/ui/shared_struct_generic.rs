#[punctual::app]
mod app {
    #[shared]
    struct Shared<T> {
        x: T,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }
}
