//! A priority is computed from integers and constants of the module.

#[punctual::app]
mod app {
    const LOW: u8 = 2;
    const STEP: u32 = 3;
    const HIGH: u8 = LOW + STEP as u8;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        low::spawn().unwrap();
        (Shared {}, Local {})
    }

    #[task(priority = LOW)]
    fn low(_: low::Context) {
        high::spawn().unwrap();
    }

    #[task(priority = 2 * (HIGH - 1) / 2 % 5 + 1)]
    fn high(_: high::Context) {
        punctual::shutdown();
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
