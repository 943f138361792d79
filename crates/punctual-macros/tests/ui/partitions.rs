//! Invalid partitions, and tasks in them.

mod core_of_idle {
    #[punctual::app(partitions = [motor])]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[idle(core = motor)]
        fn idle(_: idle::Context) {}

        #[task(core = motor)]
        fn tick(_: tick::Context) {}
    }
}

mod core_without_partitions {
    #[punctual::app()]
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

mod partition_cpu_not_a_number {
    #[punctual::app(partitions = [motor(cpu = "1")])]
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

mod partition_declared_twice {
    #[punctual::app(partitions = [motor, motor])]
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

mod partition_malformed {
    #[punctual::app(partitions = [motor, 7, "log"])]
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

mod partition_unknown {
    #[punctual::app(partitions = [motor, log])]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[task(core = moter)]
        fn tick(_: tick::Context) {}

        #[task(core = log)]
        fn tock(_: tock::Context) {}

        #[task(core = motor)]
        fn tack(_: tack::Context) {}
    }
}

mod partition_unknown_key {
    #[punctual::app(partitions = [motor(strict)])]
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

mod partition_without_tasks {
    #[punctual::app(partitions = [motor, log])]
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

mod partitions_not_a_list {
    #[punctual::app(partitions = motor)]
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

fn main() {}
