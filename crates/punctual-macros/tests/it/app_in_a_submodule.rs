//! The generated `main` is next to the app, at any depth.

#![deny(warnings)]

mod control {
    pub(super) mod deep {
        #[punctual::app]
        mod app {
            #[shared]
            struct Shared {}

            #[local]
            struct Local {}

            #[init]
            fn init(_: init::Context) -> (Shared, Local) {
                punctual::shutdown();
                (Shared {}, Local {})
            }
        }
    }
}

#[test]
fn runs() -> std::process::ExitCode {
    control::deep::main()
}
