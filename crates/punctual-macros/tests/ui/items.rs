//! Invalid items and names in the module of an app.

/// An app with these items, in a module of this name.
macro_rules! app {
    ($name:ident, $($items:tt)*) => {
        mod $name {
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

                $($items)*
            }
        }
    };
}

mod app_on_a_struct {
    #[punctual::app]
    struct App;
}

app! { attribute_misspelled,
    #[taks(priority = 2)]
    fn control(_: control::Context) {}

    #[interrupt(binds = UART0)]
    fn uart(_: uart::Context) {}

    fn log(_: log::Context) {}
}

app! { duplicate_task,
    #[task]
    fn tick(_: tick::Context) {}

    #[cfg(all())]
    #[task]
    fn tick(_: tick::Context) {}
}

app! { item_of_a_reserved_name,
    static __punctual_runtime: u32 = 0;

    const MODEL: u32 = 0;

    #[task]
    fn __punctual_partition_0(_: __punctual_partition_0::Context) {}
}

app! { reserved_task_name,
    #[task]
    fn run(_: run::Context) {}
}

app! { task_attribute_on_a_struct,
    #[task]
    struct Tick;
}

app! { task_in_extern_c_block,
    extern "C" {
        #[task]
        fn tick(_: tick::Context);
    }
}

app! { two_attributes,
    #[task]
    #[idle]
    fn tick(_: tick::Context) {}
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

mod local_declared_twice {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            sensor: u32,
            sensor: u8,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }
    }
}

mod shared_resource_declared_twice {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {
            count: u32,
            count: u8,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }
    }
}

fn main() {}
