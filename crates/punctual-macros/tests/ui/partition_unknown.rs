#[punctual::app(partitions = [motor, log])]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task(core = moter)]
    fn tick(_: tick::Context) {}

    #[task(core = log)]
    fn tock(_: tock::Context) {}

    #[task(core = motor)]
    fn tack(_: tack::Context) {}
}
