//! Values of other types than declared.

/// An app with these arguments and items, in a module of this name.
macro_rules! app {
    ($name:ident, ($($args:tt)*) $($items:tt)*) => {
        mod $name {
            #[punctual::app($($args)*)]
            mod app {
                #[shared]
                struct Shared {}

                #[local]
                struct Local {}

                #[init]
                fn init(_: init::Context) -> (Shared, Local) {
                    (Shared {}, Local {})
                }

                $($items)*
            }
        }
    };
}

app! { app_cpu_of_another_type, (cpu = CPU)
    const CPU: u32 = 1;
}

app! { const_duration_of_another_type, ()
    const PERIOD: u64 = 10;

    #[task(period = PERIOD)]
    fn tick(_: tick::Context) {}
}

app! { declared_local_of_another_type, ()
    #[task(local = [name: u32 = "tick"])]
    fn tick(_: tick::Context) {}
}

app! { partition_cpu_of_another_type, (partitions = [motor(cpu = CPU)])
    const CPU: u32 = 1;

    #[task(core = motor)]
    fn tick(_: tick::Context) {}
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

mod external_clocks {
    static OTHER: u32 = 0;

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

        #[task(period = 1.millis(), clock = CLOCK)]
        fn unknown_clock(_: unknown_clock::Context) {}

        #[task(period = 1.millis(), clock = super::OTHER)]
        fn clock_of_wrong_type(_: clock_of_wrong_type::Context) {}
    }
}

fn main() {}
