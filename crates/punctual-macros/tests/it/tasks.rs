//! Kinds of tasks.

runs! {
    bound_task, pended_messages, messages, message_with_deadline, periodic, sporadic,
    spawn_handles, async_tasks
}

mod bound_task {
    #[punctual::app]
    mod app {
        use std::os::unix::net::UnixDatagram;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            inbox: UnixDatagram,
            outbox: UnixDatagram,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            let (inbox, outbox) = UnixDatagram::pair().unwrap();
            send::spawn().unwrap();
            (Shared {}, Local { inbox, outbox })
        }

        #[task(local = [outbox])]
        fn send(cx: send::Context) {
            cx.local.outbox.send(b"now").unwrap();
        }

        #[task(binds = inbox, priority = 3, local = [inbox, bytes: [u8; 8] = [0; 8]])]
        fn receive(cx: receive::Context) {
            assert_eq!(cx.local.inbox.recv(cx.local.bytes).unwrap(), 3);
            punctual::shutdown();
        }
    }
}

mod pended_messages {
    //! A task without arguments is pended like an interrupt: twice counts once while it waits.

    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            line::pend();
            line::pend();
            (Shared {}, Local {})
        }

        #[task(local = [count: u32 = 0])]
        fn line(cx: line::Context) {
            *cx.local.count += 1;
            match *cx.local.count {
                1 => line::pend(),
                n => {
                    assert_eq!(n, 2);
                    punctual::shutdown();
                }
            }
        }
    }
}

mod messages {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            none::spawn().unwrap();
            one::spawn(1).unwrap();
            (Shared {}, Local {})
        }

        #[task]
        fn none(_: none::Context) {}

        #[task(priority = 2, capacity = 4)]
        fn one(_cx: one::Context<'_>, a: u32) {
            many::spawn(a, (2, 3), 4, "five").unwrap();
        }

        #[task(priority = 1)]
        fn many(
            many::Context { .. }: many::Context,
            mut a: u32,
            (b, c): (u32, u32),
            _: u32,
            e: &'static str,
        ) {
            a += b + c;
            assert_eq!((a, e), (6, "five"));
            // At the level of this task, so neither of them runs before it has ended.
            assert!(none::spawn().is_ok());
            assert!(none::spawn().is_err());
            last::spawn(Box::new(8)).unwrap();
            assert_eq!(*last::spawn(Box::new(9)).unwrap_err().into_inner(), 9);
        }

        #[task]
        fn last(_: last::Context, boxed: Box<u32>) {
            assert_eq!(*boxed, 8);
            punctual::shutdown();
        }
    }
}

mod message_with_deadline {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            answer::spawn().unwrap();
            (Shared {}, Local {})
        }

        #[task(priority = 28, deadline = 10.secs(), execution = 5.micros())]
        fn answer(_: answer::Context) {
            punctual::shutdown();
        }
    }
}

mod periodic {
    #[punctual::app]
    mod app {
        use punctual::Duration;
        use punctual::prelude::*;

        const PERIOD: Duration = Duration::from_millis(2);

        #[shared]
        struct Shared {
            overruns: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { overruns: 0 }, Local {})
        }

        #[task(
            priority = 3,
            period = 1.millis(),
            offset = 500.micros(),
            deadline = 900.micros(),
            on_overrun = late,
        )]
        fn fast(_: fast::Context) {}

        #[task(priority = 2, period = 500.Hz(), execution = 10.micros(), on_overrun = skip)]
        fn rate(_: rate::Context) {}

        #[task(
            period = PERIOD,
            deadline = 20.millis(),
            on_overrun = queue,
            capacity = 8,
            local = [runs: u32 = 0],
        )]
        fn steady(cx: steady::Context) {
            *cx.local.runs += 1;
            if *cx.local.runs == 3 {
                punctual::shutdown();
            }
        }

        #[task(period = Duration::from_secs(60), on_overrun = stop)]
        fn slow(_: slow::Context) {}

        #[task(priority = 4, shared = [overruns])]
        fn late(mut cx: late::Context) {
            cx.shared.overruns.lock(|overruns| *overruns += 1);
        }
    }
}

mod sporadic {
    //! Intervals between releases, given by constants, and with every policy.

    const LEAST: std::time::Duration = std::time::Duration::from_micros(300);

    #[punctual::app]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            line: std::os::unix::net::UnixStream,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            let (line, _) = std::os::unix::net::UnixStream::pair().unwrap();
            counts::spawn(1).unwrap();
            counts::spawn_after(1.millis(), 2).unwrap();
            delays::spawn().unwrap();
            rejects::pend();
            assert!(rejects::spawn().unwrap_err().is_too_early());
            (Shared {}, Local { line })
        }

        #[task(min_interval = super::LEAST, capacity = 2)]
        fn counts(_: counts::Context, _: u32) {}

        #[task(min_interval = 1.hours(), burst = 64, on_early = delay)]
        fn delays(_: delays::Context) {}

        #[task(min_interval = 1.hours(), on_early = reject, deadline = 1.millis())]
        fn rejects(_: rejects::Context) {}

        #[task(binds = line, min_interval = 1.millis(), burst = 2, on_early = reject, local = [line])]
        fn bound(_: bound::Context) {
            punctual::shutdown();
        }
    }
}

mod spawn_handles {
    #[punctual::app]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            handle: Option<never::SpawnHandle>,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            move_it::spawn().unwrap();
            let handle = never::spawn_after(60.secs(), 1, "x").unwrap();
            (Shared {}, Local { handle: Some(handle) })
        }

        #[task(local = [handle])]
        fn move_it(cx: move_it::Context) {
            let handle = cx.local.handle.take().unwrap();
            let handle = handle.reschedule_after(50.secs()).unwrap();
            let handle = handle.reschedule_at(punctual::now() + 40.secs()).unwrap();
            assert_eq!(handle.cancel(), Ok((1, "x")));
            stop::spawn_at(punctual::now() + 1.millis()).unwrap();
        }

        #[task]
        fn never(_: never::Context, _: u32, _: &'static str) {
            unreachable!();
        }

        #[task(priority = 2)]
        fn stop(_: stop::Context) {
            punctual::shutdown();
        }
    }
}

mod async_tasks {
    //! Async tasks with all supported items, in a module without a prelude.
    #![deny(missing_docs, unused, unsafe_code, clippy::all, clippy::pedantic, elided_lifetimes_in_paths)]
    #![allow(clippy::unused_async, reason = "the tasks end at once")]
    #![no_implicit_prelude]

    /// Another app, with tasks of the same names.
    #[::punctual::app(main = false)]
    #[allow(dead_code, reason = "only its names matter")]
    pub mod other {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context<'_>) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[task(waits = 64)]
        async fn sends(_: sends::Context, count: u32) {
            ::std::assert!(sends::spawn(count).is_err());
        }
    }

    /// An app.
    #[::punctual::app]
    mod app {
        use ::punctual::prelude::*;
        use ::std::option::Option::{self, None, Some};
        use ::std::string::String;

        #[derive(Debug)]
        struct Private;

        #[shared]
        struct Shared {
            total: u64,
            limit: u64,
            #[cfg(any())]
            absent: u64,
        }

        #[local]
        struct Local {
            name: String,
        }

        #[init]
        fn init(_: init::Context<'_>) -> (Shared, Local) {
            ::std::assert!(sends::spawn(Private, (1, 2)).is_ok());
            (Shared { total: 0, limit: 3 }, Local { name: String::new() })
        }

        #[task(
            priority = 2, waits = 1, deadline = 5.millis(), execution = 1.micros(),
            shared = [total, &limit, #[cfg(any())] absent], local = [name, last: Option<u64> = None],
        )]
        async fn sends(cx: sends::Context, _private: Private, (a, b): (u64, u64)) {
            let sends::Context { shared, local, .. } = cx;
            let mut total = shared.total;
            while total.lock(|total| *total) < *shared.limit {
                ::punctual::delay(1.millis()).await;
                total.lock(|total| *total += a + b);
                local.name.push('x');
                *local.last = Some(a);
            }
            ::std::assert!(r#loop::spawn().is_ok());
        }

        #[task]
        async fn r#loop(_: r#loop::Context<'_>) -> ! {
            loop {
                let forever = ::std::future::pending::<()>();
                let _ = ::punctual::timeout_after(1.millis(), forever).await;
                ::punctual::shutdown();
            }
        }

        #[cfg(any())]
        #[task(priority = 9)]
        async fn absent(_: absent::Context) {}
    }
}
