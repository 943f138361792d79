//! Intervals between releases, given by constants, and with every policy.

const LEAST: std::time::Duration = std::time::Duration::from_micros(300);

#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        line: std::os::unix::net::UnixStream,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let (line, _) = std::os::unix::net::UnixStream::pair().unwrap();
        counts::spawn(1).unwrap();
        counts::spawn_after(1.millis(), 2).unwrap();
        delays::spawn().unwrap();
        rejects::pend();
        assert!(rejects::spawn().unwrap_err().is_too_early());
        (Shared {}, Local { line })
    }

    #[task(min_interval = super::LEAST, capacity = 2)]
    fn counts(_: counts::Context, _: u32) {}

    #[task(min_interval = 1.hours(), burst = 64, on_early = delay)]
    fn delays(_: delays::Context) {}

    #[task(min_interval = 1.hours(), on_early = reject, deadline = 1.millis())]
    fn rejects(_: rejects::Context) {}

    #[task(binds = line, min_interval = 1.millis(), burst = 2, on_early = reject, local = [line])]
    fn bound(_: bound::Context) {
        punctual::shutdown();
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
