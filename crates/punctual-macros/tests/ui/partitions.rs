//! Invalid partitions, and tasks in them.

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

app! { core_of_idle, (partitions = [motor])
    #[idle(core = motor)]
    fn idle(_: idle::Context) {}

    #[task(core = motor)]
    fn tick(_: tick::Context) {}
}

app! { core_without_partitions, ()
    #[task(core = motor)]
    fn tick(_: tick::Context) {}
}

app! { partition_cpu_not_a_number, (partitions = [motor(cpu = "1")])
    #[task(core = motor)]
    fn tick(_: tick::Context) {}
}

app! { partition_declared_twice, (partitions = [motor, motor])
    #[task(core = motor)]
    fn tick(_: tick::Context) {}
}

app! { partition_malformed, (partitions = [motor, 7, "log"])
    #[task(core = motor)]
    fn tick(_: tick::Context) {}
}

app! { partition_unknown, (partitions = [motor, log])
    #[task(core = moter)]
    fn tick(_: tick::Context) {}

    #[task(core = log)]
    fn tock(_: tock::Context) {}

    #[task(core = motor)]
    fn tack(_: tack::Context) {}
}

app! { partition_unknown_key, (partitions = [motor(strict)])
    #[task(core = motor)]
    fn tick(_: tick::Context) {}
}

app! { partition_without_tasks, (partitions = [motor, log])
    #[task(core = motor)]
    fn tick(_: tick::Context) {}
}

app! { partitions_not_a_list, (partitions = motor)
    #[task(core = motor)]
    fn tick(_: tick::Context) {}
}

fn main() {}
