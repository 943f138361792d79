#[punctual::app]
mod app {
    use punctual::Duration;

    const BUDGET: Duration = Duration::from_micros(1_001);
    const PERIOD: Duration = Duration::from_micros(1_000);

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task(period = PERIOD, budget = BUDGET)]
    fn control(_: control::Context) {}

    #[task(period = 10.millis(), deadline = PERIOD, budget = 2.millis())]
    fn other(_: other::Context) {}

    #[task(deadline = 1.millis(), budget = BUDGET)]
    fn message(_: message::Context) {}
}
