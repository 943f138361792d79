#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        state: u32,
        gain: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { state: 0, gain: 1 }, Local {})
    }

    #[task(priority = 2)]
    fn control(mut cx: control::Context) {
        cx.device.GPIOA.split();
    }
}
