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
    async fn starts(_: starts::Context) {
        works::spawn(Rc::new(1), 2).ok();
    }

    #[task(local_task)]
    async fn works(_: works::Context, _: Rc<u32>, _: u32) {}
}
