//! Resources that tasks of one level share by `&` are seen by one of them at a time.

#[punctual::app]
mod app {
    use std::cell::Cell;

    #[shared]
    struct Shared {
        count: Cell<u32>,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        one::spawn().unwrap();
        (Shared { count: Cell::new(0) }, Local {})
    }

    #[task(shared = [&count])]
    fn one(cx: one::Context) {
        cx.shared.count.set(1);
        other::spawn().unwrap();
    }

    #[task(shared = [&count])]
    fn other(cx: other::Context) {
        assert_eq!(cx.shared.count.get(), 1);
        punctual::shutdown();
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
