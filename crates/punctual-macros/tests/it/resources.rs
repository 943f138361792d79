//! Shared and local resources.

runs! { local_resources, locals_for_ever, many_resources_in_one_lock, shared_resources }

mod local_resources {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            sensor: Vec<u8>,
            #[cfg(unix)]
            port: u32,
            of_idle: String,
            unused: u8,
        }

        #[init(local = [buffer: [u8; 16] = [7; 16]])]
        fn init(cx: init::Context) -> (Shared, Local) {
            let sensor = cx.local.buffer.to_vec();
            count::spawn().unwrap();
            (
                Shared {},
                Local {
                    sensor,
                    #[cfg(unix)]
                    port: 1,
                    of_idle: String::new(),
                    unused: 0,
                },
            )
        }

        #[idle(local = [of_idle, turns: u64 = 0])]
        fn idle(cx: idle::Context) {
            cx.local.of_idle.push('x');
            *cx.local.turns += 1;
        }

        #[task(local = [sensor, #[cfg(unix)] port, calls: u32 = 0, #[cfg(unix)] table: [u8; 4] = [0; 4]])]
        fn count(count::Context { local, .. }: count::Context) {
            assert_eq!(local.sensor.len(), 16);
            *local.calls += *local.port;
            local.table[0] += 1;
            if *local.calls < 3 {
                again::spawn().unwrap();
            } else {
                punctual::shutdown();
            }
        }

        /// Its `calls` is distinct from that of `count`.
        #[task(local = [calls: u32 = 0])]
        fn again(cx: again::Context) {
            *cx.local.calls += 1;
            count::spawn().unwrap();
        }
    }
}

mod locals_for_ever {
    //! Locals of an async task that never completes are `'static`, like those of `init` and `idle`.

    #[punctual::app]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            field: u32,
            taken_over: u32,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            endless::spawn().unwrap();
            (Shared {}, Local { field: 1, taken_over: 3 })
        }

        #[task(local = [field, taken_over, declared: u32 = 2])]
        async fn endless(cx: endless::Context) -> ! {
            let (field, declared): (&'static mut u32, &'static mut u32) = (cx.local.field, cx.local.declared);
            let sum = std::thread::spawn(move || *field + *declared).join().unwrap();
            *cx.local.taken_over += sum;
            punctual::delay(1.millis()).await;
            punctual::shutdown();
            std::future::pending().await
        }

        #[shutdown(local = [taken_over])]
        fn shutdown(cx: shutdown::Context) {
            assert_eq!(*cx.local.taken_over, 6);
        }
    }
}

mod locks_by_reference {
    //! A borrowed lock right can be locked like the right itself: alone, and with others.

    #[punctual::app(main = false)]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {
            a: u32,
            b: u32,
            seen: Vec<u32>,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            low::spawn().unwrap();
            (Shared { a: 0, b: 0, seen: Vec::new() }, Local {})
        }

        #[task(shared = [a, b, seen])]
        fn low(mut cx: low::Context) {
            for _ in 0..3 {
                (&mut cx.shared.a, &mut cx.shared.b).lock(|a, b| {
                    *a += 1;
                    *b += *a;
                });
            }
            let low::SharedResources { mut a, mut b, mut seen, .. } = cx.shared;
            (&mut a, &mut b, &mut seen).lock(|a, b, seen| seen.extend([*a, *b]));
            record(&mut seen, &mut b);
            record(seen, a);
            waits::spawn().unwrap();
        }

        #[task(priority = 2, shared = [a, b, seen])]
        async fn waits(mut cx: waits::Context) {
            let (a, seen) = (&mut cx.shared.a, &mut cx.shared.seen);
            punctual::delay(1.millis()).await;
            record(&mut *seen, &mut *a);
            (&mut *a, &mut cx.shared.b, seen).lock(|a, b, seen| seen.push(*a + *b));
            punctual::shutdown();
        }

        fn record(mut to: impl Mutex<T = Vec<u32>>, mut from: impl Mutex<T = u32>) {
            let value = from.lock(|value| *value);
            to.lock(|to| to.push(value));
        }

        #[shutdown(shared = [&seen])]
        fn shutdown(cx: shutdown::Context) {
            assert_eq!(*cx.shared.seen, [3, 6, 6, 3, 3, 9]);
        }
    }

    #[test]
    fn runs() {
        app::run(punctual::Config::new().virtual_time()).unwrap();
    }
}

mod many_resources_in_one_lock {
    //! Up to 16 resources are locked at once.

    #[punctual::app]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {
            a: u32,
            b: u32,
            c: u32,
            d: u32,
            e: u32,
            f: u32,
            g: u32,
            h: u32,
            i: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 8, i: 9 }, Local {})
        }

        #[idle(shared = [a, b, c, d, e, f, g, h, i])]
        fn idle(cx: idle::Context) {
            let s = cx.shared;
            let sum = (s.a, s.b, s.c, s.d, s.e, s.f, s.g, s.h, s.i)
                .lock(|a, b, c, d, e, f, g, h, i| *a + *b + *c + *d + *e + *f + *g + *h + *i);
            assert_eq!(sum, 45);
            punctual::shutdown();
        }
    }
}

mod shared_resources {
    #[punctual::app]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {
            /// Used by two tasks and `idle`.
            total: u32,
            #[lock_free]
            history: Vec<u32>,
            limits: [u32; 2],
            #[cfg(unix)]
            unix: u32,
            #[cfg(not(unix))]
            other: NoSuchType,
            unused: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            low::spawn().unwrap();
            let history = Vec::with_capacity(8);
            (
                Shared {
                    total: 0,
                    history,
                    limits: [1, 9],
                    #[cfg(unix)]
                    unix: 0,
                    unused: 0,
                },
                Local {},
            )
        }

        #[idle(shared = [total])]
        fn idle(mut cx: idle::Context) {
            cx.shared.total.lock(|total| *total += 1);
        }

        #[task(shared = [total, history, &limits, #[cfg(unix)] unix, #[cfg(not(unix))] other])]
        fn low(mut cx: low::Context) {
            cx.shared.history.push(cx.shared.limits[0]);
            let seen = cx.shared.total.lock(|total| {
                *total += 1;
                high::spawn().unwrap();
                *total
            });
            assert!(seen >= 1);
            (cx.shared.total, cx.shared.unix).lock(|total, unix| *unix = *total);
            same::spawn().unwrap();
        }

        #[task(shared = [history])]
        fn same(same::Context { shared, .. }: same::Context) {
            assert_eq!(shared.history.len(), 1);
            punctual::shutdown();
        }

        #[task(priority = 3, shared = [total, &limits, #[cfg(unix)] unix])]
        fn high(mut cx: high::Context) {
            let limit = cx.shared.limits[1];
            cx.shared.total.lock(|total| *total += limit);
            #[cfg(unix)]
            cx.shared.unix.lock(|unix| *unix += 1);
        }
    }
}
