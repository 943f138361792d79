#[punctual::app(partitions = [control, io])]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task(core = control, priority = 2)]
    fn starts(_: starts::Context) {}

    #[task(core = io, priority = 2, local_task)]
    async fn works(_: works::Context) {}

    /// What is right is not reported.
    fn start(spawner: works::LocalSpawner<'_>) {
        spawner.works().ok();
    }
}
