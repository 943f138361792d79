#[punctual::app]
mod app {
    use std::cell::Cell;

    #[shared]
    struct Shared {
        count: Cell<u32>,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { count: Cell::new(0) }, Local {})
    }

    #[task(priority = 1, shared = [&count])]
    fn tick(_: tick::Context) {}

    #[task(priority = 2, shared = [&count])]
    fn tock(_: tock::Context) {}
}
