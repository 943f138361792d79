//! How async tasks end: completed and spawned again, dropped with the run, or by a panic.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use punctual::report::Outcome;

use crate::asynch::virtual_time;

/// Counts its drops.
#[derive(Debug)]
struct Token(Arc<AtomicU32>);

impl Drop for Token {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

mod again {
    use super::*;

    #[punctual::app(main = false)]
    mod app {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

        use punctual::prelude::*;

        use super::Token;

        /// True if `works` may complete. A time would not suffice: threads without priorities may
        /// lose the CPU for longer.
        static MAY_COMPLETE: AtomicBool = AtomicBool::new(false);

        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            drops: Arc<AtomicU32>,
            retained: u32,
        }

        #[init]
        fn init(_: init::Context, drops: Arc<AtomicU32>) -> (Shared, Local) {
            spawns::spawn().unwrap();
            (Shared {}, Local { drops, retained: 0 })
        }

        #[task(priority = 1, local = [drops])]
        async fn spawns(cx: spawns::Context) {
            let token = || Token(cx.local.drops.clone());
            let drops = || cx.local.drops.load(Ordering::Relaxed);
            MAY_COMPLETE.store(false, Ordering::Relaxed);
            assert!(works::spawn(token(), 1).is_ok(), "it is above, and has been polled");
            assert_eq!(drops(), 0);
            let (refused, _) = works::spawn(token(), 2).unwrap_err().into_inner();
            drop(refused);
            assert_eq!(drops(), 1, "what was refused came back");
            MAY_COMPLETE.store(true, Ordering::Relaxed);
            while drops() < 2 {
                punctual::delay(1.millis()).await;
            }
            assert_eq!(drops(), 2, "the first has completed");
            MAY_COMPLETE.store(false, Ordering::Relaxed);
            // The slot is freed a little later, which threads without priorities may see.
            let mut third = token();
            while let Err(refused) = works::spawn(third, 3) {
                (third, _) = refused.into_inner();
                punctual::delay(1.millis()).await;
            }
            // It stays behind, at its wait.
            punctual::shutdown();
            works::spawn(token(), 4).unwrap();
        }

        #[task(priority = 2, local = [retained])]
        async fn works(cx: works::Context, _token: Token, number: u32) {
            *cx.local.retained += number;
            punctual::delay(1.millis()).await;
            while !MAY_COMPLETE.load(Ordering::Relaxed) {
                punctual::delay(1.millis()).await;
            }
        }

        #[shutdown(local = [drops, retained])]
        fn shutdown(cx: shutdown::Context) {
            // The future's values are dropped before this, including its borrow of `retained`.
            assert_eq!((cx.local.drops.load(Ordering::Relaxed), *cx.local.retained), (4, 4));
        }
    }

    #[test]
    fn futures_are_dropped_once() {
        let _alone = crate::alone();
        for _ in 0..2 {
            let drops = Arc::default();
            let report = app::run(virtual_time(), Arc::clone(&drops)).unwrap();
            assert_eq!(report.outcome, Outcome::Shutdown);
            assert_eq!(
                (drops.load(Ordering::Relaxed), report.dropped_jobs),
                (4, 1),
                "the last spawn was dropped"
            );
        }
        let drops = Arc::default();
        let report =
            app::run(punctual::Config::new().until(punctual::Duration::from_secs(20)), Arc::clone(&drops));
        assert_eq!(report.unwrap().outcome, Outcome::Shutdown);
        assert_eq!(drops.load(Ordering::Relaxed), 4);
    }
}

mod panics {
    use super::*;

    #[punctual::app(main = false)]
    mod app {
        use punctual::prelude::*;

        use super::Token;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context, token: Token, manner: u8) -> (Shared, Local) {
            breaks::spawn(token, manner).unwrap();
            (Shared {}, Local {})
        }

        struct Bad;

        impl Drop for Bad {
            fn drop(&mut self) {
                panic!("in a destructor");
            }
        }

        #[task(waits = 1)]
        async fn breaks(_: breaks::Context, _token: Token, manner: u8) {
            let _bad = (manner == 1).then(|| Bad);
            punctual::delay(1.millis()).await;
            match manner {
                0 => panic!("in a poll"),
                1 => {}
                2 => {
                    let delay = punctual::delay(1.millis());
                    let _ = punctual::timeout_after(2.millis(), delay).await;
                }
                _ => drop(std::thread::scope(|scope| {
                    let delay = || std::pin::pin!(punctual::delay(1.millis())).as_mut().poll_now();
                    scope.spawn(delay).join().expect_err("there is no app on that thread")
                })),
            }
        }

        trait PollNow {
            fn poll_now(self);
        }

        impl<F: std::future::Future> PollNow for std::pin::Pin<&mut F> {
            fn poll_now(self) {
                let _ = self.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
            }
        }
    }

    #[test]
    fn panic_stops_app_and_drops_future_once() {
        let words = ["in a poll", "in a destructor", "more than 1 times at once; raise `waits`"];
        for (manner, words) in words.into_iter().enumerate() {
            let drops = Arc::default();
            let report = app::run(virtual_time(), Token(Arc::clone(&drops)), manner as u8).unwrap();
            let Outcome::Panicked { task, message } = report.outcome else { panic!("{:?}", report.outcome) };
            assert_eq!(task, "breaks");
            assert!(message.contains(words), "{message}");
            assert_eq!(drops.load(Ordering::Relaxed), 1);
        }
        // A future on a thread that polls a delay outside of any app belongs to that thread.
        let drops = Arc::default();
        let report = app::run(virtual_time(), Token(Arc::clone(&drops)), 3).unwrap();
        assert_eq!(report.outcome, Outcome::Quiescent);
    }
}

mod unmade {
    use std::future::{Future, ready};
    use std::sync::atomic::{AtomicU32, Ordering};

    use punctual::Config;
    use punctual::report::Outcome;

    use crate::asynch::virtual_time;

    static DROPPED: AtomicU32 = AtomicU32::new(0);

    /// Counts drops in a static: even an invalid value can be dropped without harm.
    struct Counted;

    impl Drop for Counted {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A task may be any function that returns a future, and may act before it does.
    fn makes(_: app::makes::Context<'_>, counted: Counted, panics: bool) -> impl Future<Output = ()> + use<> {
        assert!(!panics, "there is no future");
        async move {
            ready(()).await;
            drop(counted);
        }
    }

    #[punctual::app(main = false)]
    mod app {

        use super::{Counted, makes};

        #[shared]
        struct Shared {
            hooks: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context, panics: bool) -> (Shared, Local) {
            makes::spawn(Counted, panics).ok().unwrap();
            (Shared { hooks: 0 }, Local {})
        }

        extern "Rust" {
            #[task]
            async fn makes(_: makes::Context, counted: Counted, panics: bool);
        }

        #[shutdown(shared = [hooks])]
        fn shutdown(cx: shutdown::Context) {
            *cx.shared.hooks += 1;
            assert_eq!(*cx.shared.hooks, 1);
        }
    }

    #[test]
    fn panicking_future_constructor_is_neither_polled_nor_dropped() {
        let _alone = crate::alone();
        let real = Config::new().until(punctual::Duration::from_secs(20));
        // In alternation: the last future's remains in the storage belong to no task.
        for config in [virtual_time(), virtual_time(), real] {
            for panics in [false, true] {
                let before = DROPPED.load(Ordering::Relaxed);
                let config = if panics { config.clone() } else { virtual_time() };
                let outcome = app::run(config, panics).unwrap().outcome;
                let (task, message) = ("makes".to_owned(), "there is no future".to_owned());
                let expected = if panics {
                    Outcome::Panicked { task: task.into(), message: message.into() }
                } else {
                    Outcome::Quiescent
                };
                assert_eq!(outcome, expected);
                assert_eq!(DROPPED.load(Ordering::Relaxed) - before, 1, "the argument alone");
            }
        }
    }
}
