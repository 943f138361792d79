#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task(priority = 2)]
    fn broken(_: broken::Context) {
        let = 3;
    }

    #[task(period = 1.millis())]
    fn whole(_: whole::Context) {
        broken::spawn().unwrap();
        helper();
    }

    fn helper() {
        broken::spawn_after(1.millis()).unwrap();
    }
}

fn outside() {
    app::broken::spawn().unwrap();
}
