#![deny(unsafe_op_in_unsafe_fn, unused_unsafe, missing_unsafe_on_extern)]

#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        stop::spawn().unwrap();
        (Shared {}, Local {})
    }

    #[task(local = [zero: u32 = unsafe { std::mem::zeroed() }])]
    fn stop(cx: stop::Context) {
        assert_eq!(*cx.local.zero, 0);
        punctual::shutdown();
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
