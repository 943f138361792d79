#[punctual::app]
mod app {
    use punctual::Duration;

    const ZERO: Duration = Duration::from_ticks(0);

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task(period = ZERO)]
    fn control(_: control::Context) {}

    #[task(deadline = ZERO, budget = ZERO, min_interval = ZERO)]
    fn message(_: message::Context) {}

    // An offset may be zero.
    #[task(period = 1.millis(), offset = ZERO)]
    fn other(_: other::Context) {}
}
