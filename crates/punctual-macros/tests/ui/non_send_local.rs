#[punctual::app]
mod app {
    use std::rc::Rc;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        handle: Rc<u32>,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local { handle: Rc::new(0) })
    }

    #[task(local = [handle])]
    fn tick(_: tick::Context) {}
}
