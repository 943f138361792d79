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

    #[task]
    fn starts(_: starts::Context) {}

    #[task(local_task, period = 10.millis())]
    fn works(_: works::Context) {}
}
