#[punctual::app(partitions = [control(offline), ui])]
mod app {

    #[shared(core = control)]
    struct Shared {}

    #[local(core = control)]
    struct Local {}

    #[init(core = control)]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[shared(core = ui)]
    struct Shared {}

    #[local(core = ui)]
    struct Local {}

    #[init(core = ui)]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task(core = control)]
    fn set(_: set::Context, _: u32) {}

    #[task(core = ui)]
    fn show(_: show::Context) {
        set::spawn(1).ok();
    }
}
