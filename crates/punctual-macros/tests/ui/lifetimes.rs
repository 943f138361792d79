//! References that outlive what they refer to.

mod await_in_lock {
    #[punctual::app]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {
            state: u32,
            gain: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { state: 0, gain: 1 }, Local {})
        }

        #[task(priority = 2, shared = [state])]
        async fn control(mut cx: control::Context) {
            cx.shared.state.lock(|_| punctual::delay(punctual::Duration::from_millis(1)).await);
        }
    }
}

mod context_with_longer_lifetime {
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
        fn tick(_: tick::Context<'static>) {}
    }
}

mod local_outlives_its_future {
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

        #[task(local = [value: u32 = 0, kept: Option<&'static mut u32> = None])]
        async fn tick(cx: tick::Context) {
            *cx.local.kept = Some(cx.local.value);
        }
    }
}

mod lock_of_a_reference {
    #[punctual::app]
    mod app {
        use std::sync::Mutex;

        use punctual::prelude::*;

        #[shared]
        struct Shared {
            gain: f32,
            log: Mutex<u32>,
            #[lock_free]
            count: u8,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { gain: 1.0, log: Mutex::new(0), count: 0 }, Local {})
        }

        #[task(priority = 2, shared = [&gain, &log, count])]
        fn control(mut cx: control::Context) {
            cx.shared.gain.lock(|gain| *gain);
            cx.shared.count.lock(|count| *count += 1);
            drop(cx.shared.log.lock());
        }
    }
}

mod message_with_a_hidden_lifetime {
    #[punctual::app]
    mod app {
        struct Wrap<'a>(&'a str);

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[task]
        fn shown(_: shown::Context, _: Wrap<'_>) {}
    }
}

mod message_with_an_elided_lifetime {
    #[punctual::app]
    mod app {
        struct Wrap<'a>(&'a str);

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[task]
        fn hidden(_: hidden::Context, _: Wrap) {}
    }
}

mod non_send_future {
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
        async fn tick(_: tick::Context) {
            let kept = Rc::new(1);
            std::future::ready(()).await;
            drop(kept);
        }
    }
}

mod reference_returned_from_lock {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {
            state: Vec<f32>,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { state: Vec::new() }, Local {})
        }

        #[task(priority = 2, shared = [state])]
        fn control(mut cx: control::Context) {
            let state = cx.shared.state.lock(|state| state);
            state.clear();
            cx.shared.state.lock(|s| {
                s.push(1.0);
                s
            });
        }

        #[task(priority = 3, shared = [state])]
        fn other(_: other::Context) {}
    }
}

mod local_outlives_its_job {
    #[punctual::app]
    mod app {
        use std::cell::Cell;

        thread_local! {
            static KEPT: Cell<Option<&'static mut u32>> = const { Cell::new(None) };
        }

        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            count: u32,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local { count: 0 })
        }

        #[task(local = [count])]
        fn tick(cx: tick::Context) {
            KEPT.set(Some(cx.local.count));
        }
    }
}

fn main() {}
