#[punctual::app]
mod app {
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

    #[task(priority = 2)]
    fn above(cx: above::Context) {
        cx.local_spawner.works().ok();
    }

    #[task(local_task)]
    async fn works(_: works::Context) {}
}
