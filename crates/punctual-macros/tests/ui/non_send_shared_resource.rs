#[punctual::app]
mod app {
    use std::rc::Rc;

    #[shared]
    struct Shared {
        handle: Rc<u32>,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { handle: Rc::new(0) }, Local {})
    }

    #[task(priority = 1, shared = [handle])]
    fn tick(_: tick::Context) {}

    #[task(priority = 2, shared = [handle])]
    fn tock(_: tock::Context) {}
}
