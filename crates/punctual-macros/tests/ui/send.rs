//! Values that cannot move to another thread, or be shared by threads.
//!
//! The tasks of `app` are named after the value that each of them has.

#[punctual::app]
mod app {
    use std::cell::Cell;
    use std::rc::Rc;

    use punctual::prelude::*;

    #[shared]
    struct Shared {
        handle: Rc<u32>,
        awaited: Rc<u32>,
        count: Cell<u32>,
        awaited_count: Cell<u32>,
    }

    #[local]
    struct Local {
        own: Rc<u32>,
        awaited_own: Rc<u32>,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        unimplemented!()
    }

    #[task(local = [handle: Rc<u32> = Rc::new(0)])]
    fn declared_local(_: declared_local::Context) {}

    #[task(local = [own])]
    fn local(_: local::Context) {}

    #[task]
    fn message(_: message::Context, handle: Rc<u32>) {
        drop(handle);
    }

    #[task]
    fn message_of_several(_: message_of_several::Context, count: u32, handle: Rc<u32>) {
        drop((count, handle));
    }

    #[task]
    async fn async_message(_: async_message::Context, _: Rc<u32>) {}

    #[task]
    async fn async_message_of_several(_: async_message_of_several::Context, _: Rc<u32>, _: u32) {}

    #[task(shared = [awaited])]
    async fn async_shared(mut cx: async_shared::Context) {
        std::future::ready(()).await;
        cx.shared.awaited.lock(|_| ());
    }

    #[task(local = [awaited_own])]
    async fn async_local(cx: async_local::Context) {
        std::future::ready(()).await;
        *cx.local.awaited_own = Rc::new(1);
    }

    #[task(priority = 1, shared = [handle])]
    fn low_shared(_: low_shared::Context) {}

    #[task(priority = 2, shared = [handle])]
    fn high_shared(_: high_shared::Context) {}

    #[task(priority = 1, shared = [&count])]
    fn low_reference(_: low_reference::Context) {}

    #[task(priority = 2, shared = [&count])]
    fn high_reference(_: high_reference::Context) {}

    #[task(shared = [&awaited_count])]
    async fn async_reference(cx: async_reference::Context) {
        std::future::ready(()).await;
        cx.shared.awaited_count.set(1);
    }

    #[task(shared = [&awaited_count])]
    fn other_reference(_: other_reference::Context) {}
}

mod resource_across_partitions {
    #[punctual::app(partitions = [motor, log])]
    mod app {
        #[shared]
        struct Shared {
            count: std::rc::Rc<u32>,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { count: 0.into() }, Local {})
        }

        #[task(core = motor, shared = [count])]
        fn tick(_: tick::Context) {}

        #[task(core = log, shared = [count])]
        fn tock(_: tock::Context) {}
    }
}

/// Each priority forms a separate local level.
mod local_tasks {
    #[punctual::app]
    mod app {
        use std::rc::Rc;

        fn send<T: Send>(_: T) {}

        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            count: Rc<u32>,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            unimplemented!()
        }

        #[task(priority = 1)]
        fn starts(_: starts::Context) {}

        #[task(priority = 1, local_task, local = [count])]
        async fn local_of_local_task(_: local_of_local_task::Context) {}

        /// Its level is local, but anybody may spawn it.
        #[task(priority = 2)]
        async fn message_at_local_level(_: message_at_local_level::Context, _: Rc<u32>) {}

        #[task(priority = 2, local_task)]
        async fn message_of_local_task(_: message_of_local_task::Context, _: Rc<u32>) {}

        #[task(priority = 3, local = [kept: Option<works::LocalSpawner<'static>> = None])]
        fn spawner_outlives_its_job(cx: spawner_outlives_its_job::Context) {
            *cx.local.kept = Some(cx.local_spawner);
        }

        #[task(priority = 3)]
        async fn spawner_on_another_thread(cx: spawner_on_another_thread::Context) {
            let spawner = cx.local_spawner;
            std::thread::scope(|scope| {
                scope.spawn(move || spawner.works().ok());
            });
        }

        #[task(priority = 3, local_task)]
        async fn works(_: works::Context) {}

        #[task(priority = 4)]
        fn context_on_another_thread(cx: context_on_another_thread::Context) {
            send(cx);
        }
    }
}
