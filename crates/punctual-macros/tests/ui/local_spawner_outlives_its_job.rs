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

    #[task(local = [kept: Option<works::LocalSpawner<'static>> = None])]
    fn starts(cx: starts::Context) {
        *cx.local.kept = Some(cx.local_spawner);
    }

    #[task(local_task)]
    async fn works(_: works::Context) {}
}
