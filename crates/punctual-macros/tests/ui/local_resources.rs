//! Invalid local resources, and lists of them.
//!
//! Each task of `app` breaks the rule after which it is named.

#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        sensor: u32,
        by_reference: u32,
        twice: u32,
        of_idle: u32,
        of_task: u32,
        #[lock_free]
        lock_free: u32,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        unimplemented!()
    }

    #[idle(local = [of_idle])]
    fn idle(_: idle::Context) {}

    #[task(local = [name: &str = "tick"])]
    fn borrowed_local(_: borrowed_local::Context) {}

    #[task(local = [count = 0])]
    fn declared_local_without_type(_: declared_local_without_type::Context) {}

    #[task(local = [count: u32])]
    fn declared_local_without_value(_: declared_local_without_value::Context) {}

    #[task(local = [count:])]
    fn local_without_anything(_: local_without_anything::Context) {}

    #[task(local = [sensor: u32 = 0])]
    fn declared_local_shadows_field(_: declared_local_shadows_field::Context) {}

    #[task(local = [&by_reference])]
    fn local_by_reference(_: local_by_reference::Context) {}

    #[task(local = [twice, twice])]
    fn local_listed_twice(_: local_listed_twice::Context) {}

    #[task(local = [of_idle])]
    fn local_of_task_and_idle(_: local_of_task_and_idle::Context) {}

    #[task(local = [of_task])]
    fn local_of_one_task(_: local_of_one_task::Context) {}

    #[task(local = [of_task])]
    fn local_of_two_tasks(_: local_of_two_tasks::Context) {}

    #[task(local = [lock_free])]
    fn lock_free_local(_: lock_free_local::Context) {}
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
