//! A task is a module as well, and so hides a type of its name.

#![allow(non_snake_case)]

#[punctual::app]
mod app {
    use ::core::primitive::u8 as Byte;

    #[shared]
    struct Shared {
        count: Byte,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        N::spawn(1).unwrap();
        (Shared { count: 0 }, Local {})
    }

    #[task(shared = [count])]
    fn N(_: N::Context, n: Byte) {
        assert_eq!(n, 1);
        W::spawn().unwrap();
    }

    #[task(priority = 2)]
    async fn W(_: W::Context) {
        S::spawn().unwrap();
    }

    #[task]
    fn S(_: S::Context) {
        u8::spawn().unwrap();
    }

    #[task(priority = 2, shared = [count])]
    fn u8(_: u8::Context) {
        Option::spawn().unwrap();
    }

    #[task]
    fn Option(_: Option::Context) {
        Result::spawn().unwrap();
    }

    #[task]
    fn Result(_: Result::Context) {
        config::spawn().unwrap();
    }

    #[task]
    fn config(_: config::Context) {
        punctual::spawn().unwrap();
    }

    #[task]
    fn punctual(_: punctual::Context) {
        core::spawn().unwrap();
    }

    #[task(period = ::punctual::Duration::from_secs(3600))]
    fn bool(_: bool::Context) {}

    #[task]
    fn core(_: core::Context) {
        ::punctual::shutdown();
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
