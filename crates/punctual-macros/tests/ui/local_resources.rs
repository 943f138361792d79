//! Invalid local resources, and lists of them.
//!
//! Each task of `app` breaks the rule after which it is named.

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

    #[task(local = [name: &str = "tick"])]
    fn borrowed_local(_: borrowed_local::Context) {}

    #[task(local = [count = 0])]
    fn declared_local_without_type(_: declared_local_without_type::Context) {}

    #[task(local = [count: u32])]
    fn declared_local_without_value(_: declared_local_without_value::Context) {}

    #[task(local = [count:])]
    fn local_without_anything(_: local_without_anything::Context) {}
}

mod declared_local_shadows_field {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            sensor: u32,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local { sensor: 0 })
        }

        #[task(local = [sensor: u32 = 0])]
        fn tick(_: tick::Context) {}
    }
}

mod local_by_reference {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            sensor: u32,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local { sensor: 0 })
        }

        #[task(local = [&sensor])]
        fn tick(_: tick::Context) {}
    }
}

mod local_listed_twice {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            sensor: u32,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local { sensor: 0 })
        }

        #[task(local = [sensor, sensor])]
        fn tick(_: tick::Context) {}
    }
}

mod local_of_task_and_idle {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            sensor: u32,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local { sensor: 0 })
        }

        #[idle(local = [sensor])]
        fn idle(_: idle::Context) {}

        #[task(local = [sensor])]
        fn tick(_: tick::Context) {}
    }
}

mod local_of_two_tasks {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            sensor: u32,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local { sensor: 0 })
        }

        #[task(local = [sensor])]
        fn tick(_: tick::Context) {}

        #[task(local = [sensor])]
        fn tock(_: tock::Context) {}
    }
}

mod lock_free_local {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            #[lock_free]
            count: u32,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local { count: 0 })
        }

        #[task(local = [count])]
        fn tick(_: tick::Context) {}
    }
}

mod missing_local_struct {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }
    }
}

mod undeclared_local {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            sensor: u32,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local { sensor: 0 })
        }

        #[task(local = [senser])]
        fn tick(_: tick::Context) {}
    }
}
