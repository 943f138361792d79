#[punctual::app]
mod app {
    #[shared]
    struct Shared {
        count: u32,
        count: u8,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }
}
