//! Names of items in and around an app.

runs! { raw_names, roles_under_any_name, shadowed_prelude, tasks_named_like_types }

mod raw_names {
    #[punctual::app]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {
            r#type: u32,
        }

        #[local]
        struct Local {
            r#fn: u32,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            r#match::spawn(2).unwrap();
            (Shared { r#type: 1 }, Local { r#fn: 1 })
        }

        #[task(shared = [r#type], local = [r#fn, r#mod: u32 = 1])]
        fn r#match(mut cx: r#match::Context, r#struct: u32) {
            cx.shared.r#type.lock(|n| *n += r#struct + *cx.local.r#fn + *cx.local.r#mod);
            punctual::shutdown();
        }

        #[task(priority = 2, period = 1.millis(), shared = [r#type])]
        fn r#loop(mut cx: r#loop::Context) {
            cx.shared.r#type.lock(|n| *n += 1);
        }
    }
}

mod roles_under_any_name {
    //! `#[init]`, `#[idle]` and `#[shutdown]` are roles, and the functions may have any name.

    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {
            count: u32,
        }

        #[local]
        struct Local {}

        #[init(local = [first: u32 = 1])]
        fn setup(cx: setup::Context) -> (Shared, Local) {
            (Shared { count: *cx.local.first }, Local {})
        }

        #[idle(shared = [count])]
        fn background(_: background::Context) {
            punctual::shutdown();
        }

        #[shutdown(shared = [count])]
        fn leave(cx: leave::Context) {
            assert_eq!(*cx.shared.count, 1);
        }
    }
}

mod shadowed_prelude {
    //! The module has its own items under the names of the standard prelude.

    #![allow(dead_code)]

    #[punctual::app]
    mod app {
        enum Option {
            Some,
            None,
        }
        use Option::{None, Some};

        struct Result;
        struct Box;
        struct Vec;
        struct Duration;
        struct Instant;
        struct Config;
        struct Report;
        struct Context;
        struct Worker;
        trait FnOnce {}
        trait Send {}
        trait Sync {}
        fn drop() {}
        mod core {}
        mod std {}

        #[shared]
        struct Shared {
            option: Option,
            result: Result,
        }

        #[local]
        struct Local {
            of_idle: Context,
            boxed: Box,
            unused: Vec,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            tick::spawn(None, Duration).ok();
            (Shared { option: Some, result: Result }, Local { of_idle: Context, boxed: Box, unused: Vec })
        }

        #[idle(shared = [option, result], local = [of_idle])]
        fn idle(_: idle::Context) {}

        #[task(shared = [option, result], local = [boxed, worker: Worker = Worker], deadline = ::punctual::Duration::from_secs(1))]
        fn tick(_: tick::Context, _option: Option, _duration: Duration) {
            ::punctual::shutdown();
        }

        #[task(priority = 2, period = ::punctual::Duration::from_secs(1), on_overrun = stop)]
        fn periodic(_: periodic::Context) {}

        #[shutdown(local = [boxed])]
        fn shutdown(_: shutdown::Context) {}
    }
}

mod tasks_named_like_types {
    //! A task is a module as well, and so hides a type of its name.

    #![allow(non_snake_case)]

    #[punctual::app]
    mod app {
        use ::core::primitive::u8 as Byte;

        #[shared]
        struct Shared {
            count: Byte,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            N::spawn(1).unwrap();
            (Shared { count: 0 }, Local {})
        }

        #[task(shared = [count])]
        fn N(_: N::Context, n: Byte) {
            assert_eq!(n, 1);
            W::spawn().unwrap();
        }

        #[task(priority = 2)]
        async fn W(_: W::Context) {
            S::spawn().unwrap();
        }

        #[task]
        fn S(_: S::Context) {
            u8::spawn().unwrap();
        }

        #[task(priority = 2, shared = [count])]
        fn u8(_: u8::Context) {
            Option::spawn().unwrap();
        }

        #[task]
        fn Option(_: Option::Context) {
            Result::spawn().unwrap();
        }

        #[task]
        fn Result(_: Result::Context) {
            config::spawn().unwrap();
        }

        #[task]
        fn config(_: config::Context) {
            punctual::spawn().unwrap();
        }

        #[task]
        fn punctual(_: punctual::Context) {
            core::spawn().unwrap();
        }

        #[task(period = ::punctual::Duration::from_secs(3600))]
        fn bool(_: bool::Context) {}

        #[task]
        fn core(_: core::Context) {
            ::punctual::shutdown();
        }
    }
}

mod names {
    //! The user's names are those of generated code as well, in every position.

    #[punctual::app(main = false)]
    mod app {
        use punctual::Duration;
        use punctual::prelude::*;

        const DURATION: Duration = Duration::from_millis(1);

        #[shared]
        struct Shared {
            worker: u32,
            level: u32,
            node: u32,
            shared: u32,
            local: u32,
            runtime: u32,
            idle: u32,
        }

        #[local]
        struct Local {
            state: u32,
            context: u32,
            retained: u32,
            release: u32,
            init: u32,
        }

        #[init(local = [worker: u32 = 1, context: u32 = 2, local: u32 = 3, shared: u32 = 4])]
        fn init(
            cx: init::Context,
            config: u32,
            init: u32,
            context: u32,
            worker: u32,
            run: &str,
            app: u32,
            runtime: u32,
        ) -> (Shared, Local) {
            let sum = *cx.local.worker + *cx.local.context + *cx.local.local + *cx.local.shared;
            assert_eq!(sum + config + init + context + worker + app + runtime, 16);
            assert_eq!(run, "run");
            worker::spawn(1, 2, 3, 4, 5, 6, 7, 8, 9, 10).unwrap();
            release::spawn(1, 2, 3, 4, 5, 6, 7, 8, 9, 10).unwrap();
            a::spawn().unwrap();
            a_b::spawn(1).unwrap();
            after_x::spawn().unwrap();
            x::spawn_after(DURATION, 1, DURATION).unwrap();
            let shared = Shared { worker: 1, level: 2, node: 3, shared: 4, local: 5, runtime: 6, idle: 7 };
            (shared, Local { state: 1, context: 2, retained: 3, release: 4, init: 5 })
        }

        #[idle(shared = [worker, idle], local = [state, retained, worker: u32 = 1, config: u32 = 2])]
        fn idle(cx: idle::Context) {
            *cx.local.state += *cx.local.retained + *cx.local.worker + *cx.local.config;
            (cx.shared.worker, cx.shared.idle).lock(|worker, idle| *worker += *idle);
        }

        #[task(priority = 2, shared = [worker, level, node, shared, local, runtime, idle], local = [context, release])]
        fn worker(
            mut cx: worker::Context,
            worker: u32,
            release: u32,
            args: u32,
            context: u32,
            state: u32,
            shared: u32,
            local: u32,
            config: u32,
            app: u32,
            function: u32,
        ) {
            assert_eq!(
                worker + release + args + context + state + shared + local + config + app + function,
                55
            );
            assert_eq!(*cx.local.context + *cx.local.release, 6);
            cx.shared.worker.lock(|worker| *worker += 1);
            (cx.shared.level, cx.shared.node, cx.shared.shared, cx.shared.local, cx.shared.runtime).lock(
                |level, node, shared, local, runtime| {
                    assert_eq!(*level + *node + *shared + *local + *runtime, 20)
                },
            );
        }

        #[task]
        fn release(
            _: release::Context,
            release: u32,
            after: u32,
            at: u32,
            me: u32,
            node: u32,
            now: u32,
            end: u32,
            runtime: u32,
            body: u32,
            level: u32,
        ) {
            assert_eq!(release + after + at + me + node + now + end + runtime + body + level, 55);
        }

        #[task(local = [b_c: u8 = 1])]
        fn a(cx: a::Context) {
            assert_eq!(*cx.local.b_c, 1);
        }

        #[task(local = [c: u32 = 2])]
        fn a_b(cx: a_b::Context, a_b: u32) {
            assert_eq!(*cx.local.c + a_b, 3);
        }

        #[task]
        fn after_x(_: after_x::Context) {}

        #[task(deadline = DURATION)]
        fn x(_: x::Context, x: u32, after: Duration) {
            assert_eq!((x, after), (1, DURATION));
            punctual::shutdown();
        }

        #[task(priority = 3, period = DURATION, local = [args: u32 = 0, worker: u32 = 0, end: u32 = 0])]
        fn end(cx: end::Context) {
            *cx.local.args += *cx.local.worker + *cx.local.end;
            assert!(cx.released <= punctual::now());
        }

        #[shutdown(shared = [worker, level], local = [context, init, worker: u32 = 1])]
        fn shutdown(cx: shutdown::Context) {
            *cx.shared.worker += *cx.local.worker + *cx.local.context + *cx.local.init + *cx.shared.level;
        }
    }

    #[test]
    fn runs() {
        app::run(punctual::Config::from_env(), 1, 1, 1, 1, "run", 1, 1).unwrap();
    }
}
