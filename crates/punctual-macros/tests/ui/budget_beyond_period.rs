#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (self::Shared, self::Local) {
        (Shared {}, Local {})
    }

    #[task(period = 1.millis(), budget = 2.millis())]
    fn control(_: self::control::Context) {}

    #[task(period = 10.millis(), deadline = 1.millis(), budget = 2.millis())]
    fn other(_: other::Context) {}
}
