#[punctual::app(partitions = [motor(cpu = CPU)])]
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

    #[task(core = motor)]
    fn tick(_: tick::Context) {}
}
