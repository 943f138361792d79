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

    #[task(local = [handle: Rc<u32> = Rc::new(0)])]
    fn tick(_: tick::Context) {}
}
