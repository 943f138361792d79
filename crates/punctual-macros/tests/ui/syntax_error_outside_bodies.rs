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

    #[task]
    fn broken(_: broken::Context, _ u8) {}

    #[task(priority = 2)]
    fn whole(_: whole::Context, _: u8) {}
}

fn outside(_: app::whole::Context, _: app::broken::Context) {
    app::whole::spawn(1).unwrap();
}
