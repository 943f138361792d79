//! A capacity comes from constants of the module, and types are named by any path.

#[punctual::app]
mod app {
    #[deny(dead_code)]
    const DEPTH: usize = 2;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: self::init::Context) -> (self::Shared, super::app::Local) {
        for n in 1..=4 {
            low::spawn(n).unwrap();
        }
        assert!(low::spawn(5).is_err());
        (Shared {}, Local {})
    }

    #[task(capacity = 2 * DEPTH)]
    fn low(_: self::low::Context<'_>, n: u8) {
        if n == 4 {
            punctual::shutdown();
        }
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
