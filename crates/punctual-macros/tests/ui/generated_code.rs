//! Apps whose generated `main` conflicts with another one, and unsafe initial values.

mod second_main {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }
    }

    fn main() {
        app::run(punctual::Config::new()).unwrap();
    }
}

mod second_main_with_exit_code {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }
    }

    fn main() -> std::process::ExitCode {
        std::process::ExitCode::SUCCESS
    }
}

mod unsafe_declared_local {
    #[punctual::app]
    mod app {
        unsafe fn zero() -> u32 {
            0
        }

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init(local = [a: u32 = zero()])]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[idle(local = [b: u32 = zero()])]
        fn idle(_: idle::Context) {}

        #[task(local = [c: u32 = zero()])]
        fn tick(_: tick::Context) {}

        #[shutdown(local = [d: u32 = zero()])]
        fn shutdown(_: shutdown::Context) {}
    }
}

fn main() {}
