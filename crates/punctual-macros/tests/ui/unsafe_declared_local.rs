#[punctual::app]
mod app {
    unsafe fn zero() -> u32 {
        0
    }

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init(local = [a: u32 = zero()])]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[idle(local = [b: u32 = zero()])]
    fn idle(_: idle::Context) {}

    #[task(local = [c: u32 = zero()])]
    fn tick(_: tick::Context) {}

    #[shutdown(local = [d: u32 = zero()])]
    fn shutdown(_: shutdown::Context) {}
}
