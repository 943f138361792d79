//! `#[init]`, `#[idle]` and `#[shutdown]` are roles, and the functions may have any name.

#[punctual::app]
mod app {
    #[shared]
    struct Shared {
        count: u32,
    }

    #[local]
    struct Local {}

    #[init(local = [first: u32 = 1])]
    fn setup(cx: setup::Context) -> (Shared, Local) {
        (Shared { count: *cx.local.first }, Local {})
    }

    #[idle(shared = [count])]
    fn background(_: background::Context) {
        punctual::shutdown();
    }

    #[shutdown(shared = [count])]
    fn leave(cx: leave::Context) {
        assert_eq!(*cx.shared.count, 1);
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
