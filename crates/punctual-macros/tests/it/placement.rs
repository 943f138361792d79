//! Places of an app: modules, macros, crates.

runs! { minimal }

mod minimal {
    #[punctual::app]
    mod app {
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
}

mod app_in_a_submodule {
    //! The generated `main` is next to the app, at any depth.

    #![deny(warnings)]

    mod control {
        pub(super) mod deep {
            #[punctual::app]
            mod app {
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
        }
    }

    #[test]
    fn runs() -> std::process::ExitCode {
        control::deep::main()
    }
}

mod nested_app {
    mod outer {
        pub type Word = u32;

        pub mod inner {
            #[punctual::app(main = false)]
            pub(crate) mod pump {
                use super::super::Word;

                #[shared]
                pub struct Resources {
                    pub words: Word,
                }

                #[local]
                pub struct Own {}

                #[init]
                fn init(_: init::Context) -> (Resources, Own) {
                    super::start();
                    (Resources { words: 0 }, Own {})
                }

                #[task(shared = [words])]
                fn stroke(cx: stroke::Context, words: super::super::Word) {
                    use punctual::prelude::*;
                    let mut total = cx.shared.words;
                    total.lock(|total| *total += words);
                    punctual::shutdown();
                }
            }

            fn start() {
                pump::stroke::spawn(4).unwrap();
            }
        }
    }

    #[test]
    fn runs() {
        let report = outer::inner::pump::run(punctual::Config::from_env()).unwrap();
        assert_eq!(report.task("stroke").unwrap().jobs, 1);
    }
}

mod two_apps {
    #[punctual::app(main = false)]
    mod first {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            next: u32,
        }

        #[init]
        fn init(_: init::Context, next: u32) -> (Shared, Local) {
            tick::spawn().unwrap();
            (Shared {}, Local { next })
        }

        #[task(local = [next])]
        fn tick(cx: tick::Context) {
            assert_eq!(*cx.local.next, 2);
            punctual::shutdown();
        }
    }

    #[punctual::app(main = false)]
    mod second {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            tick::spawn(3).unwrap();
            (Shared {}, Local {})
        }

        #[task(priority = 2)]
        fn tick(_: tick::Context, n: u32) {
            // Not running, so the job is rejected.
            assert_eq!(
                (n, crate::placement::two_apps::first::tick::spawn()),
                (3, Err(punctual::SpawnError::Stopping(())))
            );
            punctual::shutdown();
        }
    }

    #[test]
    fn runs() {
        // In sequence, and again.
        for _ in 0..2 {
            first::run(punctual::Config::from_env(), 2).unwrap();
            second::run(punctual::Config::from_env()).unwrap();
        }
    }
}

mod app_from_macro {
    macro_rules! app {
        ($name:ident, $count:ty, $priority:literal, $period:expr, $task:ident($arg:ident: $ty:ty) $body:block) => {
            #[punctual::app(main = false)]
            mod $name {
                use punctual::prelude::*;

                type Alias = $ty;

                #[shared]
                struct Shared {
                    count: $count,
                }

                #[local]
                struct Local {}

                #[init]
                fn init(_: init::Context, worker: $ty) -> (Shared, Local) {
                    $task::spawn(worker, worker).unwrap();
                    (Shared { count: 0 }, Local {})
                }

                #[task(priority = $priority, shared = [count], local = [own: $ty = 0])]
                fn $task(mut cx: $task::Context, $arg: $ty, args: Alias) {
                    *cx.local.own += args;
                    cx.shared.count.lock(|count| *count += 1);
                    $body
                }

                #[task(priority = 3, period = $period, shared = [count])]
                fn clock(mut cx: clock::Context) {
                    cx.shared.count.lock(|count| *count += 1);
                }
            }
        };
    }

    app!(first, u64, 2, 1.millis(), tick(args: u32) {
        assert_eq!(args, 5);
        punctual::shutdown();
    });

    app!(second, i8, 4, punctual::Duration::from_millis(2), worker(worker: u8) {
        assert_eq!(worker, 6);
        punctual::shutdown();
    });

    #[test]
    fn runs() {
        first::run(punctual::Config::from_env(), 5).unwrap();
        second::run(punctual::Config::from_env(), 6).unwrap();
    }
}

mod another_root {
    //! The framework is found at the path in `crate`: here it is re-exported, and `punctual` is
    //! something else.

    mod framework {
        pub mod rt {
            pub use ::punctual::*;
        }
    }

    mod renamed {
        use crate::placement::another_root::framework::rt as punctual;

        #[punctual::app(crate = crate::placement::another_root::framework::rt, main = false)]
        pub(super) mod app {
            use crate::placement::another_root::framework::rt;
            use rt::prelude::*;

            #[shared]
            struct Shared {
                count: u32,
            }

            #[local]
            struct Local {}

            #[init]
            fn init(_: init::Context) -> (Shared, Local) {
                waits::spawn(1).unwrap();
                (Shared { count: 0 }, Local {})
            }

            #[idle(shared = [count])]
            fn idle(_: idle::Context) {}

            #[task(priority = 2, shared = [count])]
            async fn waits(mut cx: waits::Context, n: u32) {
                cx.shared.count.lock(|count| *count += n);
                rt::delay(1.millis()).await;
                rt::shutdown();
            }

            #[task(period = rt::Duration::from_millis(1), on_overrun = stop, shared = [count])]
            fn tick(_: tick::Context) {}
        }
    }

    #[test]
    fn runs() {
        renamed::app::run(framework::rt::Config::from_env()).unwrap();
    }
}
