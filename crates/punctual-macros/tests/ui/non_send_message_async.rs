#[punctual::app]
mod app {
    use std::rc::Rc;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task]
    async fn one(_: one::Context, _: Rc<u32>) {}

    #[task]
    async fn several(_: several::Context, _: Rc<u32>, _: u32) {}

    /// Its level is local, but anybody may spawn it.
    #[task(priority = 2)]
    async fn starts(_: starts::Context, _: Rc<u32>) {}

    #[task(priority = 2, local_task)]
    async fn works(_: works::Context, _: Rc<u32>) {}
}
