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
    async fn starts(cx: starts::Context) {
        let spawner = cx.local_spawner;
        std::thread::scope(|scope| {
            scope.spawn(move || spawner.works().ok());
        });
    }

    #[task(local_task)]
    async fn works(_: works::Context) {}
}
