#[punctual::app(partitions = [motor])]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task(core = "motor 1")]
    fn tick(_: tick::Context) {}

    #[task(core = "motor")]
    fn tack(_: tack::Context) {}
}
