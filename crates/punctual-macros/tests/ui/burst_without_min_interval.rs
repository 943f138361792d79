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

    #[task(burst = 2)]
    fn t(_: t::Context) {}
}
