#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn setup(_: setup::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }
}
