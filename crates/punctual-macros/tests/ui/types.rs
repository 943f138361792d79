//! Values of other types than declared.

mod app_cpu_of_another_type {
    #[punctual::app(cpu = CPU)]
    mod app {
        const CPU: u32 = 1;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }
    }
}

mod app_stack_of_another_type {
    const STACK: u64 = 1 << 20;

    #[punctual::app(stack = super::STACK)]
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
}

mod binds_not_an_event_source {
    #[punctual::app]
    mod app {
        struct Sensor;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            sensor: Sensor,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local { sensor: Sensor })
        }

        #[task(binds = sensor, local = [sensor])]
        fn tick(_: tick::Context) {}
    }
}

mod const_duration_of_another_type {
    #[punctual::app]
    mod app {
        const PERIOD: u64 = 10;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[task(period = PERIOD)]
        fn tick(_: tick::Context) {}
    }
}

mod declared_local_of_another_type {
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

        #[task(local = [name: u32 = "tick"])]
        fn tick(_: tick::Context) {}
    }
}

mod extern_context_of_a_longer_lifetime {
    fn tick(_: app::tick::Context<'static>) {}

    #[punctual::app]
    mod app {
        use super::tick;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        extern "Rust" {
            #[task]
            fn tick(_: tick::Context);
        }
    }
}

mod partition_cpu_of_another_type {
    #[punctual::app(partitions = [motor(cpu = CPU)])]
    mod app {
        const CPU: u32 = 1;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[task(core = motor)]
        fn tick(_: tick::Context) {}
    }
}

fn main() {}
