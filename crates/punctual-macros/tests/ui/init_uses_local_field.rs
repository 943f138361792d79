#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        sensor: u32,
    }

    #[init(local = [sensor])]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local { sensor: 0 })
    }
}
