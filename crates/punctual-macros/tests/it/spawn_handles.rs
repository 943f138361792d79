#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        handle: Option<never::SpawnHandle>,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        move_it::spawn().unwrap();
        let handle = never::spawn_after(60.secs(), 1, "x").unwrap();
        (Shared {}, Local { handle: Some(handle) })
    }

    #[task(local = [handle])]
    fn move_it(cx: move_it::Context) {
        let handle = cx.local.handle.take().unwrap();
        let handle = handle.reschedule_after(50.secs()).unwrap();
        let handle = handle.reschedule_at(punctual::now() + 40.secs()).unwrap();
        assert_eq!(handle.cancel(), Ok((1, "x")));
        stop::spawn_at(punctual::now() + 1.millis()).unwrap();
    }

    #[task]
    fn never(_: never::Context, _: u32, _: &'static str) {
        unreachable!();
    }

    #[task(priority = 2)]
    fn stop(_: stop::Context) {
        punctual::shutdown();
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
