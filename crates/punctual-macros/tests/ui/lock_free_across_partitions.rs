#[punctual::app(partitions = [motor, log])]
mod app {
    #[shared]
    struct Shared {
        #[lock_free]
        count: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { count: 0 }, Local {})
    }

    #[task(core = motor, shared = [count])]
    fn tick(_: tick::Context) {}

    #[task(core = log, shared = [count])]
    fn tock(_: tock::Context) {}
}
