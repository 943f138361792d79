//! Items under `#[cfg]`.

runs! { conditional_tasks, conditions_in_cfg_attr, exclusive_conditions, exclusive_items }

mod conditional_tasks {
    #[punctual::app]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {
            total: u32,
        }

        #[local]
        struct Local {
            #[cfg(not(unix))]
            absent: NoSuchType,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            #[cfg(unix)]
            present::spawn().unwrap();
            (Shared { total: 0 }, Local {})
        }

        /// Documented.
        #[cfg(unix)]
        #[task(shared = [total])]
        #[inline(never)]
        fn present(mut cx: present::Context) {
            cx.shared.total.lock(|total| *total += 1);
            punctual::shutdown();
        }

        #[cfg(not(unix))]
        #[task(priority = 5, period = 1.millis(), shared = [total], local = [absent])]
        fn absent(_: absent::Context) {}
    }
}

mod conditions_in_cfg_attr {
    //! `#[cfg_attr(.., cfg(..))]` is a `#[cfg]`: it also removes the code generated for its item.

    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {
            here: u32,
            #[cfg_attr(all(), cfg(any()))]
            gone: Missing,
        }

        #[local]
        struct Local {
            #[cfg_attr(all(), cfg(any()))]
            gone: Missing,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            there::spawn().unwrap();
            (Shared { here: 0 }, Local {})
        }

        #[cfg_attr(all(), cfg(any()))]
        #[idle]
        fn idle(_: idle::Context) {
            missing();
        }

        #[cfg_attr(all(), inline, cfg(any()))]
        #[task(priority = 3, shared = [here], local = [gone])]
        fn gone(_: gone::Context, _: Missing) {}

        #[cfg_attr(all(), cfg_attr(all(), cfg(any())))]
        #[task(priority = 2, period = MISSING)]
        fn gone_too(_: gone_too::Context) {}

        #[cfg_attr(any(), cfg(any()))]
        #[task(
            shared = [#[cfg_attr(any(), cfg(any()))] here, #[cfg_attr(all(), cfg(any()))] gone],
            local = [#[cfg_attr(all(), cfg(any()))] gone_from_the_list: Missing = MISSING]
        )]
        fn there(_: there::Context) {
            punctual::shutdown();
        }
    }
}

mod exclusive_conditions {
    //! Mutually exclusive `#[cfg]`s select between tasks of one name, which may differ in
    //! everything.

    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {
            count: u32,
        }

        #[local]
        struct Local {
            own: u32,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            chosen::spawn(1).unwrap();
            (Shared { count: 0 }, Local { own: 1 })
        }

        #[cfg(any())]
        #[task(priority = 3, period = punctual::Duration::from_secs(1), local = [own])]
        fn chosen(_: chosen::Context) {
            missing();
        }

        #[cfg(unix)]
        #[task(priority = 2, shared = [count], local = [own])]
        async fn chosen(cx: chosen::Context, n: u32) {
            assert_eq!(n, *cx.local.own);
            released::spawn().unwrap();
        }

        #[cfg(not(unix))]
        #[task(shared = [count])]
        fn released(_: released::Context, _: Missing) {}

        #[cfg(not(any()))]
        #[task(shared = [count])]
        fn released(_: released::Context) {
            punctual::shutdown();
        }
    }
}

mod exclusive_items {
    //! Mutually exclusive `#[cfg]`s select between items of any kind: simulation and hardware in
    //! one app.

    #[punctual::app(partitions = [control, io])]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {
            #[cfg(unix)]
            port: u32,
            #[cfg(not(unix))]
            port: [Missing; 7],
            #[cfg_attr(unix, lock_free)]
            count: u32,
        }

        #[cfg(unix)]
        #[local]
        struct Local {
            steps: u32,
            #[cfg(unix)]
            line: u8,
            #[cfg(not(unix))]
            line: Missing,
        }

        #[cfg(not(unix))]
        #[local]
        struct Local {}

        #[cfg(not(unix))]
        const LEVEL: u8 = 200;
        #[cfg(unix)]
        const LEVEL: u8 = 3;

        #[cfg_attr(unix, init)]
        fn simulated(_: simulated::Context) -> (Shared, Local) {
            step::spawn(0).unwrap();
            (Shared { port: 1, count: 0 }, Local { steps: 0, line: 1 })
        }

        #[cfg(not(unix))]
        #[init]
        fn hardware(_: hardware::Context) -> (Shared, Local) {}

        #[cfg(unix)]
        #[idle(local = [#[cfg(unix)] line, #[cfg(not(unix))] missing])]
        fn idle(cx: idle::Context) {
            *cx.local.line += 1;
        }

        #[cfg(not(unix))]
        #[idle]
        fn sleep(_: sleep::Context) {}

        #[cfg_attr(unix, task(
            priority = LEVEL,
            capacity = 2,
            shared = [#[cfg(unix)] port, #[cfg(not(unix))] &port, count],
            local = [steps],
        ))]
        #[cfg_attr(not(unix), task(binds = line, local = [line]))]
        fn step(mut cx: step::Context, #[cfg(unix)] by: u32, #[cfg(not(unix))] by: Missing) {
            *cx.local.steps += by + 1;
            *cx.shared.count += 1;
            if cx.shared.port.lock(|port| *port + *cx.local.steps) == 4 {
                return punctual::shutdown();
            }
            later();
        }

        #[cfg(not(unix))]
        #[task(core = io, local = [steps])]
        fn only_on_hardware(_: only_on_hardware::Context) {}

        #[cfg_attr(not(unix), task)]
        fn later() {
            step::spawn_after(1.millis(), 1).unwrap();
        }

        #[cfg(unix)]
        #[shutdown(shared = [#[cfg(all())] #[cfg(unix)] &count])]
        fn shutdown(cx: shutdown::Context) {
            assert_eq!(*cx.shared.count, 2);
        }

        #[cfg(not(unix))]
        #[shutdown]
        fn shutdown(_: shutdown::Context, _: u8) {}
    }
}
