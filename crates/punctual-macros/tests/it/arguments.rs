//! Forms of the arguments of `#[app]`, `#[task]` and `run`.

runs! { argument_forms, capacity_from_constants, priorities_from_constants, durations }

mod app_arguments {
    #[punctual::app(cpu = CPUS - 1, priority_base = 40, strict = false, trace = false, monitor = false, main = false)]
    mod app {
        const CPUS: usize = 1;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            punctual::shutdown();
            (Shared {}, Local {})
        }
    }

    #[test]
    fn runs() {
        app::run(punctual::Config::from_env()).unwrap();
    }
}

mod argument_forms {
    #[punctual::app]
    mod app {
        struct Point {
            x: i32,
            y: i32,
        }

        struct Marker;

        static NAMES: [&str; 2] = ["a", "b"];

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            statics::spawn(NAMES[0], &NAMES).unwrap();
            arrays::spawn([1, 2, 3], [[0; 2]; 2]).unwrap();
            patterns::spawn(Point { x: 1, y: 2 }, (3, (4, 5)), [6, 7, 8], Marker, 9, 10).ok().unwrap();
            ignored::spawn(1, "two", ()).unwrap();
            owned::spawn(String::from("x"), Box::new(|n| n + 1), vec![Some(1)], double).ok().unwrap();
            one_unit::spawn(()).unwrap();
            one_tuple::spawn((1, 2)).unwrap();
            assert!(matches!(one_tuple::spawn((3, 4)), Err(punctual::SpawnError::Full((3, 4), _))));
            (Shared {}, Local {})
        }

        fn double(n: &u32) -> u32 {
            n * 2
        }

        #[task(priority = 9)]
        fn statics(_: statics::Context, name: &'static str, names: &'static [&'static str; 2]) {
            assert_eq!(name, names[0]);
        }

        #[task(priority = 8)]
        fn arrays(_: arrays::Context, mut a: [u32; 3], [b, _]: [[u8; 2]; 2]) {
            a[0] += u32::from(b[0]);
            assert_eq!(a, [1, 2, 3]);
        }

        #[task(priority = 7)]
        fn patterns(
            _: patterns::Context,
            Point { x, mut y }: Point,
            (a, (b, mut c)): (u32, (u32, u32)),
            [first, .., last]: [u32; 3],
            Marker: Marker,
            ref r: u32,
            whole @ _: u32,
        ) {
            y += x;
            c += a + b;
            assert_eq!((y, c, first, last, *r, whole), (3, 12, 6, 8, 9, 10));
        }

        #[task(priority = 6)]
        fn ignored(_: ignored::Context, _: u32, _: &'static str, (): ()) {}

        #[task(priority = 5)]
        fn owned(
            _: owned::Context,
            mut text: String,
            add: Box<dyn Fn(u32) -> u32 + Send>,
            list: Vec<Option<u8>>,
            function: fn(&u32) -> u32,
        ) {
            text.push('y');
            assert_eq!((text.as_str(), add(1), list.len(), function(&4)), ("xy", 2, 1, 8));
        }

        #[task(priority = 4)]
        fn one_unit(_: one_unit::Context, _: ()) {}

        #[task(priority = 1)]
        fn one_tuple(_: one_tuple::Context, (a, b): (u32, u32)) {
            assert_eq!((a, b), (1, 2));
            punctual::shutdown();
        }
    }
}

mod run_arguments {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            path: String,
        }

        #[init]
        fn init(_: init::Context, path: &str, times: u32) -> (Shared, Local) {
            for _ in 0..times {
                step::spawn().unwrap();
            }
            (Shared {}, Local { path: path.to_owned() })
        }

        #[task(capacity = 2, local = [path])]
        fn step(cx: step::Context) {
            assert_eq!(cx.local.path, "here");
            punctual::shutdown();
        }
    }

    #[test]
    fn runs() {
        app::run(punctual::Config::from_env(), "here", 2).unwrap();
    }
}

mod capacity_from_constants {
    //! A capacity comes from constants of the module, and types are named by any path.

    #[punctual::app]
    mod app {
        #[deny(dead_code)]
        const DEPTH: usize = 2;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: self::init::Context) -> (self::Shared, super::app::Local) {
            for n in 1..=4 {
                low::spawn(n).unwrap();
            }
            assert!(low::spawn(5).is_err());
            (Shared {}, Local {})
        }

        #[task(capacity = 2 * DEPTH)]
        fn low(_: self::low::Context<'_>, n: u8) {
            if n == 4 {
                punctual::shutdown();
            }
        }
    }
}

mod priorities_from_constants {
    //! A priority is computed from integers and constants of the module.

    #[punctual::app]
    mod app {
        const LOW: u8 = 2;
        const STEP: u32 = 3;
        const HIGH: u8 = LOW + STEP as u8;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            low::spawn().unwrap();
            (Shared {}, Local {})
        }

        #[task(priority = LOW)]
        fn low(_: low::Context) {
            high::spawn().unwrap();
        }

        #[task(priority = 2 * (HIGH - 1) / 2 % 5 + 1)]
        fn high(_: high::Context) {
            punctual::shutdown();
        }
    }
}

mod durations {
    //! Durations in the notation of RTIC and of the standard library.

    #[punctual::app]
    mod app {
        use std::time::Duration as StdDuration;

        use punctual::Duration;
        use punctual::prelude::*;

        const PERIOD: StdDuration = StdDuration::from_millis(2);

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            later::spawn_after(3u32.millis()).unwrap();
            later::spawn_after(Duration::millis(3))
                .unwrap()
                .reschedule_after(StdDuration::from_millis(2))
                .unwrap();
            (Shared {}, Local {})
        }

        #[task(period = PERIOD, offset = Duration::millis(1), deadline = 2u32.millis(), execution = Duration::from_micros(1))]
        fn ticks(_: ticks::Context) {}

        #[task(period = StdDuration::from_millis(5), deadline = Duration::micros(500))]
        fn tocks(_: tocks::Context) {}

        #[task(capacity = 2)]
        fn later(_: later::Context) {
            let _ = waits::spawn();
        }

        #[task]
        async fn waits(_: waits::Context) {
            punctual::delay(StdDuration::from_millis(1)).await;
            let never = std::future::pending::<()>();
            assert!(punctual::timeout_after(1u32.millis(), never).await.is_err());
            punctual::shutdown();
        }
    }
}
