//! The framework is found at the path in `crate`: here it is re-exported, and `punctual` is
//! something else.

mod framework {
    pub mod rt {
        pub use ::punctual::*;
    }
}

mod renamed {
    use crate::another_root::framework::rt as punctual;

    #[punctual::app(crate = crate::another_root::framework::rt, main = false)]
    pub(super) mod app {
        use crate::another_root::framework::rt;
        use rt::prelude::*;

        #[shared]
        struct Shared {
            count: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            waits::spawn(1).unwrap();
            (Shared { count: 0 }, Local {})
        }

        #[idle(shared = [count])]
        fn idle(_: idle::Context) {}

        #[task(priority = 2, shared = [count])]
        async fn waits(mut cx: waits::Context, n: u32) {
            cx.shared.count.lock(|count| *count += n);
            rt::delay(1.millis()).await;
            rt::shutdown();
        }

        #[task(period = rt::Duration::from_millis(1), on_overrun = stop, shared = [count])]
        fn tick(_: tick::Context) {}
    }
}

#[test]
fn runs() {
    renamed::app::run(framework::rt::Config::from_env()).unwrap();
}
