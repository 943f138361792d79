//! Invalid arguments of `#[app]`.

/// An app with these arguments and tasks, in a module of this name.
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

app! { app_argument_without_value, (monitor) }
app! { app_cpu_not_a_number, (cpu = "0") }
app! { app_crate_is_a_relative_path, (crate = super::rt) }
app! { app_priority_base_out_of_range, (priority_base = 99) }
app! { app_stack_too_small, (stack = 16.kib()) }
app! { app_stack_without_unit, (stack = 8) }
app! { app_unknown_argument, (clock = 1) }

app! { executor_not_a_string, (executor = global)
    #[task]
    fn tick(_: tick::Context) {}
}

app! { executor_unknown, (executor = "local")
    #[task]
    fn tick(_: tick::Context) {}
}

app! { global_with_core, (executor = "global")
    #[task(core = motor)]
    fn tick(_: tick::Context) {}
}

app! { global_with_cpu, (executor = "global", cpu = 1)
    #[task]
    fn tick(_: tick::Context) {}
}

app! { global_with_partitions, (executor = "global", partitions = [motor])
    #[task]
    fn tick(_: tick::Context) {}
}

app! { cpu_with_partitions, (partitions = [motor, log], cpu = 1)
    #[task(core = motor)]
    fn tick(_: tick::Context) {}

    #[task(core = log)]
    fn tock(_: tock::Context) {}
}

mod init_arguments_and_main {
    #[punctual::app(main = true)]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context, path: &str) -> (Shared, Local) {
            (Shared {}, Local {})
        }
    }
}

fn main() {}
