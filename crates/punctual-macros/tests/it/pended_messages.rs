//! A task without arguments is pended like an interrupt: twice counts once while it waits.

#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        line::pend();
        line::pend();
        (Shared {}, Local {})
    }

    #[task(local = [count: u32 = 0])]
    fn line(cx: line::Context) {
        *cx.local.count += 1;
        match *cx.local.count {
            1 => line::pend(),
            n => {
                assert_eq!(n, 2);
                punctual::shutdown();
            }
        }
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
