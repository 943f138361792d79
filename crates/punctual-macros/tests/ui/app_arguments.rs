//! Invalid arguments of `#[app]`.

mod app_argument_without_value {
    #[punctual::app(monitor)]
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

mod app_cpu_not_a_number {
    #[punctual::app(cpu = "0")]
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

mod app_crate_is_a_relative_path {
    #[punctual::app(crate = super::rt)]
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

mod app_priority_base_out_of_range {
    #[punctual::app(priority_base = 99)]
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

mod app_stack_too_small {
    #[punctual::app(stack = 16.kib())]
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

mod app_stack_without_unit {
    #[punctual::app(stack = 8)]
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

mod app_unknown_argument {
    #[punctual::app(clock = 1)]
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

mod executor_not_a_string {
    #[punctual::app(executor = global)]
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
    }
}

mod executor_unknown {
    #[punctual::app(executor = "local")]
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
    }
}

mod global_with_core {
    #[punctual::app(executor = "global")]
    mod app {
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

mod global_with_cpu {
    #[punctual::app(executor = "global", cpu = 1)]
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
    }
}

mod global_with_partitions {
    #[punctual::app(executor = "global", partitions = [motor])]
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
    }
}

mod cpu_with_partitions {
    #[punctual::app(partitions = [motor, log], cpu = 1)]
    mod app {
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

        #[task(core = log)]
        fn tock(_: tock::Context) {}
    }
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
