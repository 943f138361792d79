#[punctual::app(partitions = [motor, "log"])]
mod app {
    #[shared]
    struct Shared {
        count: u32,
    }

    #[local]
    struct Local {
        line: u32,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { count: 0 }, Local { line: 0 })
    }

    #[task(core = "motor", shared = ["count"], local = ["line"], binds = "line")]
    fn control(_: control::Context) {}

    #[task(core = motor + 1, period = punctual::Duration::from_millis(1), on_overrun = "skip")]
    fn log(_: log::Context) {}
}
