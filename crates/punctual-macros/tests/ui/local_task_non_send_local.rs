#[punctual::app]
mod app {
    use std::rc::Rc;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        count: Rc<u32>,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local { count: Rc::new(0) })
    }

    #[task]
    fn starts(_: starts::Context) {}

    #[task(local_task, local = [count])]
    async fn works(_: works::Context) {}
}
