#[punctual::app]
mod app {
    #[shared]
    struct Shared(u32);

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared(0), Local {})
    }
}
