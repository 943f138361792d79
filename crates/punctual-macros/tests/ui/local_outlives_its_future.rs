#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task(local = [value: u32 = 0, kept: Option<&'static mut u32> = None])]
    async fn tick(cx: tick::Context) {
        *cx.local.kept = Some(cx.local.value);
    }
}
