fn tick(_: app::tick::Context<'static>) {}

#[punctual::app]
mod app {
    use super::tick;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    extern "Rust" {
        #[task]
        fn tick(_: tick::Context);
    }
}
