#[punctual::app]
mod app {
    use punctual::Duration;
    use punctual::prelude::*;

    const PERIOD: Duration = Duration::from_millis(2);

    #[shared]
    struct Shared {
        overruns: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { overruns: 0 }, Local {})
    }

    #[task(
        priority = 3,
        period = 1.millis(),
        offset = 500.micros(),
        deadline = 900.micros(),
        on_overrun = late,
    )]
    fn fast(_: fast::Context) {}

    #[task(priority = 2, period = 500.Hz(), execution = 10.micros(), on_overrun = skip)]
    fn rate(_: rate::Context) {}

    #[task(
        period = PERIOD,
        deadline = 20.millis(),
        on_overrun = queue,
        capacity = 8,
        local = [runs: u32 = 0],
    )]
    fn steady(cx: steady::Context) {
        *cx.local.runs += 1;
        if *cx.local.runs == 3 {
            punctual::shutdown();
        }
    }

    #[task(period = Duration::from_secs(60), on_overrun = stop)]
    fn slow(_: slow::Context) {}

    #[task(priority = 4, shared = [overruns])]
    fn late(mut cx: late::Context) {
        cx.shared.overruns.lock(|overruns| *overruns += 1);
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
