//! Syntax errors: the rest of the app is unaffected.

mod syntax_error_in_a_body {
    #[punctual::app]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[task(priority = 2)]
        fn broken(_: broken::Context) {
            let = 3;
        }

        #[task(period = 1.millis())]
        fn whole(_: whole::Context) {
            broken::spawn().unwrap();
            helper();
        }

        fn helper() {
            broken::spawn_after(1.millis()).unwrap();
        }
    }

    fn outside() {
        app::broken::spawn().unwrap();
    }
}

mod syntax_error_outside_bodies {
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

        #[task]
        fn broken(_: broken::Context, _ u8) {}

        #[task(priority = 2)]
        fn whole(_: whole::Context, _: u8) {}
    }

    fn outside(_: app::whole::Context, _: app::broken::Context) {
        app::whole::spawn(1).unwrap();
    }
}

fn main() {}
