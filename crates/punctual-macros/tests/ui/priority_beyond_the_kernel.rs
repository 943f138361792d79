#[punctual::app(priority_base = 80)]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task(priority = 19)]
    fn highest(_: highest::Context) {}

    #[task(priority = 20)]
    fn beyond(_: beyond::Context) {}
}
