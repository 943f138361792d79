#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        sensor: u32,
        sensor: u8,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }
}
