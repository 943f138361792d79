#[punctual::app(cpu = CPU)]
mod app {
    const CPU: u32 = 1;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }
}
