//! Shared resources used only by `idle` stay on its thread.

#[punctual::app]
mod app {
    use std::rc::Rc;

    use punctual::prelude::*;

    #[shared]
    struct Shared {
        of_idle: Rc<u32>,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { of_idle: Rc::new(1) }, Local {})
    }

    #[idle(shared = [of_idle])]
    fn idle(mut cx: idle::Context) {
        cx.shared.of_idle.lock(|of_idle| *of_idle = Rc::new(**of_idle + 1));
        punctual::shutdown();
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
