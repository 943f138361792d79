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
    fn tick(_: tick::Context, handle: Rc<u32>) {
        drop(handle);
    }
}
