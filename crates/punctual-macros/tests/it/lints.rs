//! Lints that an app does not trigger.

runs! { unsafe_lints }

mod strict_lints {
    //! A program under all lints, which may not use `unsafe`.

    #![forbid(unsafe_code)]
    #![deny(warnings)]
    #![deny(missing_docs, unused, unreachable_pub, private_interfaces, nonstandard_style, rust_2018_idioms)]
    #![deny(
        impl_trait_redundant_captures,
        missing_debug_implementations,
        trivial_casts,
        unused_qualifications,
        unused_results,
        single_use_lifetimes
    )]
    #![deny(clippy::all, clippy::pedantic)]

    use punctual::prelude::*;

    /// Counts.
    #[punctual::app(main = false)]
    mod app {
        use punctual::prelude::*;

        /// Resources shared by the tasks.
        #[derive(Debug)]
        #[shared]
        pub(crate) struct Shared {
            total: u32,
            table: [u32; 2],
            #[lock_free]
            history: Vec<u32>,
        }

        /// Resources that are not shared.
        #[derive(Debug)]
        #[local]
        pub(crate) struct Local {
            sensor: Sensor,
            of_idle: u32,
            _unused: u32,
        }

        #[derive(Debug)]
        struct Sensor(u32);

        #[init(local = [start: u32 = 0])]
        fn init(cx: init::Context<'_>, start: u32) -> (Shared, Local) {
            *cx.local.start = start;
            low::spawn(Sensor(start), 1).expect("there is room");
            waits::spawn().expect("it does not run yet");
            let shared = Shared { total: *cx.local.start, table: [1, 2], history: Vec::with_capacity(4) };
            (shared, Local { sensor: Sensor(1), of_idle: 0, _unused: 0 })
        }

        #[idle(shared = [total], local = [of_idle, turns: u32 = 0])]
        fn idle(mut cx: idle::Context<'_>) {
            *cx.local.of_idle += cx.shared.total.lock(|total| *total);
            *cx.local.turns += 1;
        }

        #[task(shared = [total, &table, history], local = [sensor])]
        fn low(mut cx: low::Context<'_>, sensor: Sensor, times: u32) {
            cx.local.sensor.0 += sensor.0 + times;
            cx.shared.history.push(cx.shared.table[0]);
            cx.shared.total.lock(|total| *total += 1);
            drop(later::spawn_after(1.millis()));
        }

        #[task(shared = [total])]
        async fn waits(mut cx: waits::Context<'_>) {
            punctual::delay(1.millis()).await;
            cx.shared.total.lock(|total| *total += 1);
        }

        #[task(priority = 2)]
        fn later(_: later::Context<'_>) {
            punctual::shutdown();
        }

        #[task(priority = 3, period = 1.millis(), deadline = 900.micros(), shared = [total])]
        fn high(mut cx: high::Context<'_>) {
            cx.shared.total.lock(|total| *total += 1);
        }

        #[shutdown(shared = [total], local = [sensor, calls: u32 = 0])]
        fn shutdown(cx: shutdown::Context<'_>) {
            *cx.local.calls += *cx.shared.total + cx.local.sensor.0;
        }
    }

    #[test]
    fn runs() {
        let config = punctual::Config::from_env().until(10.secs());
        let _ = app::run(config, 3).expect("the app starts");
    }
}

mod unsafe_lints {
    #![deny(unsafe_op_in_unsafe_fn, unused_unsafe, missing_unsafe_on_extern)]

    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            stop::spawn().unwrap();
            (Shared {}, Local {})
        }

        #[task(local = [zero: u32 = unsafe { std::mem::zeroed() }])]
        fn stop(cx: stop::Context) {
            assert_eq!(*cx.local.zero, 0);
            punctual::shutdown();
        }
    }
}
