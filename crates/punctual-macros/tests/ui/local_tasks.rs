//! Invalid local tasks.

mod local_task_bound {
    #[punctual::app]
    mod app {
        use std::os::unix::net::UnixStream;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            line: UnixStream,
        }

        #[init]
        fn init(_: init::Context, line: UnixStream) -> (Shared, Local) {
            (Shared {}, Local { line })
        }

        #[task]
        fn starts(_: starts::Context) {}

        #[task(local_task, binds = line, local = [line])]
        fn works(_: works::Context) {}
    }
}

mod local_task_not_async {
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

        #[task(local_task)]
        fn works(_: works::Context) {}
    }
}

mod local_task_periodic {
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
        fn starts(_: starts::Context) {}

        #[task(local_task, period = 10.millis())]
        fn works(_: works::Context) {}
    }
}

mod local_task_without_spawner {
    #[punctual::app(partitions = [control, io])]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[task(core = control, priority = 2)]
        fn starts(_: starts::Context) {}

        #[task(core = io, priority = 2, local_task)]
        async fn works(_: works::Context) {}

        /// What is right is not reported.
        fn start(spawner: works::LocalSpawner<'_>) {
            spawner.works().ok();
        }
    }
}

fn main() {}
