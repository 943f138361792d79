#[punctual::app]
mod app {
    const BASE: u32 = 258;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task(priority = BASE as u8 / 64)]
    fn wraps(_: wraps::Context) {}
}
