#[punctual::app(main = false)]
mod first {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        next: u32,
    }

    #[init]
    fn init(_: init::Context, next: u32) -> (Shared, Local) {
        tick::spawn().unwrap();
        (Shared {}, Local { next })
    }

    #[task(local = [next])]
    fn tick(cx: tick::Context) {
        assert_eq!(*cx.local.next, 2);
        punctual::shutdown();
    }
}

#[punctual::app(main = false)]
mod second {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        tick::spawn(3).unwrap();
        (Shared {}, Local {})
    }

    #[task(priority = 2)]
    fn tick(_: tick::Context, n: u32) {
        // Not running, so the job is rejected.
        assert_eq!((n, crate::two_apps::first::tick::spawn()), (3, Err(punctual::SpawnError::Stopping(()))));
        punctual::shutdown();
    }
}

#[test]
fn runs() {
    // In sequence, and again.
    for _ in 0..2 {
        first::run(punctual::Config::from_env(), 2).unwrap();
        second::run(punctual::Config::from_env()).unwrap();
    }
}
