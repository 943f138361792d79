//! Invalid items and names in the module of an app.

mod app_on_a_struct {
    #[punctual::app]
    struct App;
}

mod attribute_misspelled {
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

        #[taks(priority = 2)]
        fn control(_: control::Context) {}

        #[interrupt(binds = UART0)]
        fn uart(_: uart::Context) {}

        fn log(_: log::Context) {}
    }
}

mod duplicate_task {
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

        #[cfg(all())]
        #[task]
        fn tick(_: tick::Context) {}
    }
}

mod item_of_a_reserved_name {
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

        static __punctual_runtime: u32 = 0;

        const MODEL: u32 = 0;

        #[task]
        fn __punctual_partition_0(_: __punctual_partition_0::Context) {}
    }
}

mod reserved_task_name {
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
        fn run(_: run::Context) {}
    }
}

mod task_attribute_on_a_struct {
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
        struct Tick;
    }
}

mod task_in_extern_c_block {
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

        extern "C" {
            #[task]
            fn tick(_: tick::Context);
        }
    }
}

mod two_attributes {
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
        #[idle]
        fn tick(_: tick::Context) {}
    }
}

mod every_error_is_reported {
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

        #[task(priority = 29, shared = [cuont])]
        fn tick(_: tick::Context) {}

        #[task(period = 10, local = [sensor])]
        async fn tock(_: tick::Context) {}
    }
}

fn main() {}
