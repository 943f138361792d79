//! Invalid signatures of tasks.

mod async_task_returns_value {
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
        async fn tick(_: tick::Context) -> u32 {
            0
        }
    }
}

mod borrowed_message {
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
        fn tick(_: tick::Context, name: &str) {}
    }
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

mod const_task {
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
        const fn tick(_: tick::Context) {}
    }
}

mod context_of_another_task {
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
        fn tick(_: tick::Context) {}

        #[task]
        fn tock(_: tick::Context) {}
    }
}

mod extern_c_task {
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
        extern "C" fn tick(_: tick::Context) {}
    }
}

mod generic_task {
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
        fn tick<T>(_: tick::Context, _: T) {}
    }
}

mod missing_context {
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
        fn tick() {}

        #[task]
        fn tock(count: u32) {}
    }
}

mod opaque_message {
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
        fn tick(_: tick::Context, count: impl Copy) {}
    }
}

mod periodic_with_arguments {
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

        #[task(period = 10.millis())]
        fn tick(_: tick::Context, count: u32) {}
    }
}

mod target_feature {
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
        #[target_feature(enable = "sse2")]
        fn fast(_: fast::Context) {}
    }
}

mod task_returns_value {
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
        fn tick(_: tick::Context) -> u32 {
            0
        }
    }
}

mod unsafe_task {
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
        unsafe fn tick(_: tick::Context) {}
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

fn main() {}
