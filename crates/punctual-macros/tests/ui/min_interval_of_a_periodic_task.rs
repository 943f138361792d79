#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task(period = 10.millis(), min_interval = 5.millis())]
    fn t(_: t::Context) {}
}
