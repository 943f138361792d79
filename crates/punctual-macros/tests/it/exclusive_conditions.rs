//! Mutually exclusive `#[cfg]`s select between tasks of one name, which may differ in everything.

#[punctual::app]
mod app {
    #[shared]
    struct Shared {
        count: u32,
    }

    #[local]
    struct Local {
        own: u32,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        chosen::spawn(1).unwrap();
        (Shared { count: 0 }, Local { own: 1 })
    }

    #[cfg(any())]
    #[task(priority = 3, period = punctual::Duration::from_secs(1), local = [own])]
    fn chosen(_: chosen::Context) {
        missing();
    }

    #[cfg(unix)]
    #[task(priority = 2, shared = [count], local = [own])]
    async fn chosen(cx: chosen::Context, n: u32) {
        assert_eq!(n, *cx.local.own);
        released::spawn().unwrap();
    }

    #[cfg(not(unix))]
    #[task(shared = [count])]
    fn released(_: released::Context, _: Missing) {}

    #[cfg(not(any()))]
    #[task(shared = [count])]
    fn released(_: released::Context) {
        punctual::shutdown();
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
