//! Tasks and handlers defined outside the module of the app.

runs! { extern_handlers, extern_async_tasks }

mod extern_handlers {
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
}

mod extern_async_tasks {
    //! An async task may be defined in another module.

    mod elsewhere {
        use super::app::{waits, works};

        pub(super) async fn works(cx: works::Context<'_>, n: u32) {
            *cx.local.sum += n;
            punctual::delay(std::time::Duration::from_millis(1)).await;
            waits::spawn().unwrap();
        }

        pub(super) async fn waits(_: waits::Context<'_>) -> ! {
            punctual::shutdown();
            std::future::pending().await
        }
    }

    #[punctual::app]
    mod app {
        use super::elsewhere::{waits, works};

        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            sum: u32,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            works::spawn(1).unwrap();
            (Shared {}, Local { sum: 0 })
        }

        extern "Rust" {
            #[task(local = [sum])]
            async fn works(_: works::Context, n: u32);

            #[task(priority = 2)]
            async fn waits(_: waits::Context) -> !;
        }
    }
}
