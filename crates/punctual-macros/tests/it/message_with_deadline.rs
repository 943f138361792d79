#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        answer::spawn().unwrap();
        (Shared {}, Local {})
    }

    #[task(priority = 28, deadline = 10.secs(), execution = 5.micros())]
    fn answer(_: answer::Context) {
        punctual::shutdown();
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
