#[punctual::app]
mod app {
    use punctual::Duration;

    const PERIOD: Duration = Duration::from_micros(999);

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task(period = PERIOD, deadline = 1.millis())]
    fn control(_: control::Context) {}

    // Its releases wait.
    #[task(period = PERIOD, deadline = 1.millis(), on_overrun = queue, capacity = 2)]
    fn queued(_: queued::Context) {}
}
