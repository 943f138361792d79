//! Durations in the notation of RTIC and of the standard library.

#[punctual::app]
mod app {
    use std::time::Duration as StdDuration;

    use punctual::Duration;
    use punctual::prelude::*;

    const PERIOD: StdDuration = StdDuration::from_millis(2);

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        later::spawn_after(3u32.millis()).unwrap();
        later::spawn_after(Duration::millis(3))
            .unwrap()
            .reschedule_after(StdDuration::from_millis(2))
            .unwrap();
        (Shared {}, Local {})
    }

    #[task(period = PERIOD, offset = Duration::millis(1), deadline = 2u32.millis(), execution = Duration::from_micros(1))]
    fn ticks(_: ticks::Context) {}

    #[task(period = StdDuration::from_millis(5), deadline = Duration::micros(500))]
    fn tocks(_: tocks::Context) {}

    #[task(capacity = 2)]
    fn later(_: later::Context) {
        let _ = waits::spawn();
    }

    #[task]
    async fn waits(_: waits::Context) {
        punctual::delay(StdDuration::from_millis(1)).await;
        let never = std::future::pending::<()>();
        assert!(punctual::timeout_after(1u32.millis(), never).await.is_err());
        punctual::shutdown();
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
