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
    struct Shared {
        screen: u8,
    }

    #[local(core = ui)]
    struct Local {}

    #[init(core = ui)]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { screen: 0 }, Local {})
    }

    #[task(core = control, period = punctual::Duration::from_millis(1), shared = [screen])]
    fn sample(_: sample::Context) {}

    #[task(core = ui, crosses)]
    fn show(_: show::Context) {}
}
