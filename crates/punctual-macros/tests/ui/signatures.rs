//! Invalid signatures of tasks.
//!
//! Each task of `app` breaks the rule after which it is named.

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

    #[task]
    async fn async_task_returns_value(_: async_task_returns_value::Context) -> u32 {
        0
    }

    #[task]
    fn borrowed_message(_: borrowed_message::Context, name: &str) {}

    #[task]
    const fn const_task(_: const_task::Context) {}

    #[task]
    fn context_of_another_task(_: context_of_another_task::Context) {}

    #[task]
    fn context_of_another_task_tock(_: context_of_another_task::Context) {}

    #[task]
    extern "C" fn extern_c_task(_: extern_c_task::Context) {}

    #[task]
    fn generic_task<T>(_: generic_task::Context, _: T) {}

    #[task]
    fn missing_context() {}

    #[task]
    fn missing_context_tock(count: u32) {}

    #[task]
    fn opaque_message(_: opaque_message::Context, count: impl Copy) {}

    #[task(period = 10.millis())]
    fn periodic_with_arguments(_: periodic_with_arguments::Context, count: u32) {}

    #[task]
    #[target_feature(enable = "sse2")]
    fn target_feature(_: target_feature::Context) {}

    #[task]
    fn task_returns_value(_: task_returns_value::Context) -> u32 {
        0
    }

    #[task]
    unsafe fn unsafe_task(_: unsafe_task::Context) {}
}

mod bound_with_arguments {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            socket: std::net::UdpSocket,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local { socket: std::net::UdpSocket::bind("127.0.0.1:0").unwrap() })
        }

        #[task(binds = socket, local = [socket])]
        fn tick(_: tick::Context, count: u32) {}
    }
}

mod context_of_rtic {
    #[punctual::app]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {
            state: u32,
            gain: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { state: 0, gain: 1 }, Local {})
        }

        #[task(priority = 2)]
        fn control(mut cx: control::Context) {
            cx.device.GPIOA.split();
        }
    }
}
