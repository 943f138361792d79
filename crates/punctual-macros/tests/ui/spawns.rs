//! Spawns of tasks that are released otherwise.

#[punctual::app]
mod app {
    use std::rc::Rc;

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
        delays::spawn_after(1.millis()).unwrap();
    }

    #[task(period = 10.millis())]
    fn control(_: control::Context) {}

    #[task(binds = line, local = [line])]
    fn edge(_: edge::Context) {}

    #[task(min_interval = 5.millis(), on_early = delay)]
    fn delays(_: delays::Context) {}

    #[task]
    async fn waits(_: waits::Context) {}

    #[task]
    async fn ticker_awaited(_: ticker_awaited::Context) {
        let mut ticker = punctual::every(10.millis());
        loop {
            ticker.await;
        }
    }

    #[task(priority = 2)]
    async fn local_task_spawned_by_name(_: local_task_spawned_by_name::Context) {
        works::spawn(Rc::new(1), 2).ok();
    }

    #[task(priority = 2, local_task)]
    async fn works(_: works::Context, _: Rc<u32>, _: u32) {}
}

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
