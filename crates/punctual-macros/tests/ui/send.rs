//! Values that cannot move to another thread, or be shared by threads.

mod non_send_declared_local {
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

        #[task(local = [handle: Rc<u32> = Rc::new(0)])]
        fn tick(_: tick::Context) {}
    }
}

mod non_send_local {
    #[punctual::app]
    mod app {
        use std::rc::Rc;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            handle: Rc<u32>,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local { handle: Rc::new(0) })
        }

        #[task(local = [handle])]
        fn tick(_: tick::Context) {}
    }
}

mod non_send_message {
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
        fn tick(_: tick::Context, handle: Rc<u32>) {
            drop(handle);
        }
    }
}

mod non_send_message_async {
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
        async fn one(_: one::Context, _: Rc<u32>) {}

        #[task]
        async fn several(_: several::Context, _: Rc<u32>, _: u32) {}

        /// Its level is local, but anybody may spawn it.
        #[task(priority = 2)]
        async fn starts(_: starts::Context, _: Rc<u32>) {}

        #[task(priority = 2, local_task)]
        async fn works(_: works::Context, _: Rc<u32>) {}
    }
}

mod non_send_message_of_several {
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
        fn tick(_: tick::Context, count: u32, handle: Rc<u32>) {
            drop((count, handle));
        }
    }
}

mod non_send_resource_across_partitions {
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

mod non_send_resource_async {
    #[punctual::app]
    mod app {
        use std::rc::Rc;

        use punctual::prelude::*;

        #[shared]
        struct Shared {
            shared: Rc<u32>,
        }

        #[local]
        struct Local {
            local: Rc<u32>,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { shared: Rc::new(0) }, Local { local: Rc::new(0) })
        }

        #[task(shared = [shared])]
        async fn locks(mut cx: locks::Context) {
            std::future::ready(()).await;
            cx.shared.shared.lock(|_| ());
        }

        #[task(local = [local])]
        async fn has(cx: has::Context) {
            std::future::ready(()).await;
            *cx.local.local = Rc::new(1);
        }
    }
}

mod non_send_shared_resource {
    #[punctual::app]
    mod app {
        use std::rc::Rc;

        #[shared]
        struct Shared {
            handle: Rc<u32>,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { handle: Rc::new(0) }, Local {})
        }

        #[task(priority = 1, shared = [handle])]
        fn tick(_: tick::Context) {}

        #[task(priority = 2, shared = [handle])]
        fn tock(_: tock::Context) {}
    }
}

mod non_sync_ref_resource {
    #[punctual::app]
    mod app {
        use std::cell::Cell;

        #[shared]
        struct Shared {
            count: Cell<u32>,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { count: Cell::new(0) }, Local {})
        }

        #[task(priority = 1, shared = [&count])]
        fn tick(_: tick::Context) {}

        #[task(priority = 2, shared = [&count])]
        fn tock(_: tock::Context) {}
    }
}

mod non_sync_ref_resource_async {
    #[punctual::app]
    mod app {
        use std::cell::Cell;

        #[shared]
        struct Shared {
            count: Cell<u32>,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { count: Cell::new(0) }, Local {})
        }

        #[task(shared = [&count])]
        async fn waits(cx: waits::Context) {
            std::future::ready(()).await;
            cx.shared.count.set(1);
        }

        #[task(shared = [&count])]
        fn tock(_: tock::Context) {}
    }
}

mod local_task_non_send_local {
    #[punctual::app]
    mod app {
        use std::rc::Rc;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            count: Rc<u32>,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local { count: Rc::new(0) })
        }

        #[task]
        fn starts(_: starts::Context) {}

        #[task(local_task, local = [count])]
        async fn works(_: works::Context) {}
    }
}

mod local_spawner_outlives_its_job {
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

        #[task(local = [kept: Option<works::LocalSpawner<'static>> = None])]
        fn starts(cx: starts::Context) {
            *cx.local.kept = Some(cx.local_spawner);
        }

        #[task(local_task)]
        async fn works(_: works::Context) {}
    }
}

mod local_spawner_on_another_thread {
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
        async fn starts(cx: starts::Context) {
            let spawner = cx.local_spawner;
            std::thread::scope(|scope| {
                scope.spawn(move || spawner.works().ok());
            });
        }

        #[task(local_task)]
        async fn works(_: works::Context) {}
    }
}

mod context_on_another_thread {
    #[punctual::app]
    mod app {
        fn send<T: Send>(_: T) {}

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[task]
        fn tick(cx: tick::Context) {
            send(cx);
        }
    }
}

fn main() {}
