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
    async fn tick(_: tick::Context) {
        let kept = Rc::new(1);
        std::future::ready(()).await;
        drop(kept);
    }
}
