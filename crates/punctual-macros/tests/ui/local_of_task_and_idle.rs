#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        sensor: u32,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local { sensor: 0 })
    }

    #[idle(local = [sensor])]
    fn idle(_: idle::Context) {}

    #[task(local = [sensor])]
    fn tick(_: tick::Context) {}
}
