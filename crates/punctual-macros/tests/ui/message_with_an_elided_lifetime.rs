#[punctual::app]
mod app {
    struct Wrap<'a>(&'a str);

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task]
    fn hidden(_: hidden::Context, _: Wrap) {}
}
