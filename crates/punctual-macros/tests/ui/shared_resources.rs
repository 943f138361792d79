//! Invalid shared resources, and lists of them.

mod lock_free_across_levels {
    #[punctual::app]
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

        #[task(priority = 1, shared = [count])]
        fn tick(_: tick::Context) {}

        #[task(priority = 2, shared = [count])]
        fn tock(_: tock::Context) {}
    }
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

mod lock_free_async {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {
            #[lock_free]
            value: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { value: 0 }, Local {})
        }

        #[task(shared = [value])]
        async fn tick(_: tick::Context) {}
    }
}

mod lock_free_by_reference {
    #[punctual::app]
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

        #[task(shared = [&count])]
        fn tick(_: tick::Context) {}
    }
}

mod lock_free_with_idle {
    #[punctual::app]
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

        #[idle(shared = [count])]
        fn idle(_: idle::Context) {}

        #[task(shared = [count])]
        fn tick(_: tick::Context) {}
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

mod mixed_access {
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

        #[task(priority = 1, shared = [count])]
        fn tick(_: tick::Context) {}

        #[task(priority = 2, shared = [&count])]
        fn tock(_: tock::Context) {}
    }
}

mod resource_left_out {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {
            #[cfg(not(unix))]
            port: u32,
            #[cfg(unix)]
            other: u32,
        }

        #[local]
        struct Local {}

        #[cfg(unix)]
        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { other: 0 }, Local {})
        }

        #[task(shared = [port])]
        fn control(_: control::Context) {}
    }
}

mod resource_not_listed {
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

        #[task(priority = 2, shared = [gain])]
        fn control(mut cx: control::Context) {
            cx.shared.state.lock(|state| *state += 1);
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

mod resource_with_a_link_section {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {
            #[unsafe(link_section = ".fast")]
            table: [u8; 4],
        }

        #[local]
        struct Local {
            #[unsafe(link_section = ".fast")]
            own: u8,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { table: [0; 4] }, Local { own: 0 })
        }
    }
}

mod shared_resource_by_mut_reference {
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

        #[task(shared = [&mut count])]
        fn tick(_: tick::Context) {}
    }
}

mod shared_resource_declared_in_list {
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

        #[task(shared = [count: u32 = 0])]
        fn tick(_: tick::Context) {}
    }
}

mod shared_resource_listed_twice {
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

        #[task(shared = [count, &count])]
        fn tick(_: tick::Context) {}
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

mod shared_resource_without_lock {
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

        #[task(priority = 2, shared = [state])]
        fn control(mut cx: control::Context) {
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

fn main() {}
