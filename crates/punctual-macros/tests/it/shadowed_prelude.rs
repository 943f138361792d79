//! The module has its own items under the names of the standard prelude.

#![allow(dead_code)]

#[punctual::app]
mod app {
    enum Option {
        Some,
        None,
    }
    use Option::{None, Some};

    struct Result;
    struct Box;
    struct Vec;
    struct Duration;
    struct Instant;
    struct Config;
    struct Report;
    struct Context;
    struct Worker;
    trait FnOnce {}
    trait Send {}
    trait Sync {}
    fn drop() {}
    mod core {}
    mod std {}

    #[shared]
    struct Shared {
        option: Option,
        result: Result,
    }

    #[local]
    struct Local {
        of_idle: Context,
        boxed: Box,
        unused: Vec,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        tick::spawn(None, Duration).ok();
        (Shared { option: Some, result: Result }, Local { of_idle: Context, boxed: Box, unused: Vec })
    }

    #[idle(shared = [option, result], local = [of_idle])]
    fn idle(_: idle::Context) {}

    #[task(shared = [option, result], local = [boxed, worker: Worker = Worker], deadline = ::punctual::Duration::from_secs(1))]
    fn tick(_: tick::Context, _option: Option, _duration: Duration) {
        ::punctual::shutdown();
    }

    #[task(priority = 2, period = ::punctual::Duration::from_secs(1), on_overrun = stop)]
    fn periodic(_: periodic::Context) {}

    #[shutdown(local = [boxed])]
    fn shutdown(_: shutdown::Context) {}
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
