//! Invalid shared resources, and lists of them.
//!
//! Each task of `app` breaks the rule after which it is named, and each of `used` uses a resource
//! in a wrong way.

#[punctual::app]
mod app {
    #[shared]
    struct Shared {
        #[lock_free]
        of_two_levels: u32,
        #[lock_free]
        of_async_task: u32,
        #[lock_free]
        by_reference: u32,
        #[lock_free]
        of_idle: u32,
        mixed: u32,
        #[cfg(not(unix))]
        port: u32,
        #[unsafe(link_section = ".fast")]
        table: [u8; 4],
        by_mut_reference: u32,
        twice: u32,
    }

    #[local]
    struct Local {
        #[unsafe(link_section = ".fast")]
        own: u8,
    }

    #[cfg(unix)]
    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        unimplemented!()
    }

    #[idle(shared = [of_idle])]
    fn idle(_: idle::Context) {}

    #[task(priority = 1, shared = [of_two_levels])]
    fn lock_free_at_low_level(_: lock_free_at_low_level::Context) {}

    #[task(priority = 2, shared = [of_two_levels])]
    fn lock_free_across_levels(_: lock_free_across_levels::Context) {}

    #[task(shared = [of_async_task])]
    async fn lock_free_async(_: lock_free_async::Context) {}

    #[task(shared = [&by_reference])]
    fn lock_free_by_reference(_: lock_free_by_reference::Context) {}

    #[task(shared = [of_idle])]
    fn lock_free_with_idle(_: lock_free_with_idle::Context) {}

    #[task(priority = 1, shared = [mixed])]
    fn locked_access(_: locked_access::Context) {}

    #[task(priority = 2, shared = [&mixed])]
    fn mixed_access(_: mixed_access::Context) {}

    #[task(shared = [port])]
    fn resource_left_out(_: resource_left_out::Context) {}

    #[task(shared = [&mut by_mut_reference])]
    fn shared_resource_by_mut_reference(_: shared_resource_by_mut_reference::Context) {}

    #[task(shared = [count: u32 = 0])]
    fn shared_resource_declared_in_list(_: shared_resource_declared_in_list::Context) {}

    #[task(shared = [twice, &twice])]
    fn shared_resource_listed_twice(_: shared_resource_listed_twice::Context) {}
}

mod lock_free_across_partitions {
    #[punctual::app(partitions = [motor, log])]
    mod app {
        #[shared]
        struct Shared {
            #[lock_free]
            count: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { count: 0 }, Local {})
        }

        #[task(core = motor, shared = [count])]
        fn tick(_: tick::Context) {}

        #[task(core = log, shared = [count])]
        fn tock(_: tock::Context) {}
    }
}

mod missing_shared_struct {
    #[punctual::app]
    mod app {
        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }
    }
}

mod resource_struct_with_drop {
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

        impl Drop for Shared {
            fn drop(&mut self) {}
        }
    }
}

mod shared_struct_generic {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared<T> {
            x: T,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }
    }
}

mod shared_struct_tuple {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared(u32);

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared(0), Local {})
        }
    }
}

mod two_shared_structs {
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

        #[shared]
        struct Other {}
    }
}

mod undeclared_shared_resource {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {
            count: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { count: 0 }, Local {})
        }

        #[task(shared = [cuont])]
        fn tick(_: tick::Context) {}
    }
}

mod used {
    #[punctual::app]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {
            state: u32,
            gain: u32,
            on: bool,
            samples: Vec<u32>,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { state: 0, gain: 1, on: true, samples: Vec::new() }, Local {})
        }

        #[task(priority = 2, shared = [gain])]
        fn resource_not_listed(mut cx: resource_not_listed::Context) {
            cx.shared.state.lock(|state| *state += 1);
        }

        #[task(priority = 2, shared = [state])]
        fn resource_without_lock(mut cx: resource_without_lock::Context) {
            *cx.shared.state += 1;
        }

        #[task(priority = 3, shared = [state, on, samples])]
        fn uses_values(cx: uses_values::Context) {
            if cx.shared.on {
                cx.shared.samples.push(1);
            }
            let _ = !cx.shared.on;
            let _ = cx.shared.state as f32;
            for _ in cx.shared.samples {}
        }
    }
}
