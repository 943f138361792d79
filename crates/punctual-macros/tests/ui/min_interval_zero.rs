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

    #[task(min_interval = 0.millis())]
    fn t(_: t::Context) {}
}
