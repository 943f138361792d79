//! Spawns of tasks that are released otherwise.

mod local_spawner_elsewhere {
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
        fn starts(_: starts::Context) {}

        #[task(priority = 2)]
        fn above(cx: above::Context) {
            cx.local_spawner.works().ok();
        }

        #[task(local_task)]
        async fn works(_: works::Context) {}
    }
}

mod local_task_spawned_by_name {
    #[punctual::app]
    mod app {
        use std::rc::Rc;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[task]
        async fn starts(_: starts::Context) {
            works::spawn(Rc::new(1), 2).ok();
        }

        #[task(local_task)]
        async fn works(_: works::Context, _: Rc<u32>, _: u32) {}
    }
}

mod spawn_at_a_time_of_a_task_that_delays {
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

        #[task(min_interval = 5.millis(), on_early = delay)]
        fn t(_: t::Context) {}

        #[task]
        fn u(_: u::Context) {
            t::spawn_after(1.millis()).unwrap();
        }
    }
}

mod spawn_of_task_released_otherwise {
    #[punctual::app]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            line: std::io::Stdin,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local { line: std::io::stdin() })
        }

        #[idle]
        fn idle(_: idle::Context) {
            control::spawn().unwrap();
            edge::spawn_after(1.millis()).unwrap();
            waits::spawn_after(1.millis()).unwrap();
            idle::spawn().unwrap();
        }

        #[task(period = 10.millis())]
        fn control(_: control::Context) {}

        #[task(binds = line, local = [line])]
        fn edge(_: edge::Context) {}

        #[task]
        async fn waits(_: waits::Context) {}
    }
}

mod ticker_awaited {
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

        #[task]
        async fn control(_: control::Context) {
            let mut ticker = punctual::every(10.millis());
            loop {
                ticker.await;
            }
        }
    }
}

fn main() {}
