#[punctual::app(partitions = [motor(cpu = "1")])]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task(core = motor)]
    fn tick(_: tick::Context) {}
}
