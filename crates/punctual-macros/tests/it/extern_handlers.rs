fn init(_: app::init::Context<'_>) -> (app::Shared, app::Local) {
    app::hello::spawn(1).unwrap();
    (app::Shared {}, app::Local {})
}

fn hello(_: app::hello::Context<'_>, n: u32) {
    assert_eq!(n, 1);
    punctual::shutdown();
}

fn idle(_: app::idle::Context<'_>) {}

#[punctual::app]
mod app {
    use super::{hello, idle, init};

    #[shared]
    pub struct Shared {}

    #[local]
    pub struct Local {}

    extern "Rust" {
        #[init]
        fn init(_: init::Context) -> (Shared, Local);

        #[task(priority = 2)]
        fn hello(_: hello::Context, n: u32);
    }

    unsafe extern "Rust" {
        #[idle]
        safe fn idle(_: idle::Context);
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
