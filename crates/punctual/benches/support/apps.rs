//! Apps with one driver job that measures an operation, with and without monitoring, marks in the
//! kernel's trace and a profile.
//!
//! Each measurement is a run of the app: real-time threads are started and pinned, the driver
//! performs `iterations` operations in sequence and measures the time of all of them, and the app
//! is shut down.

/// Operation of the driver.
#[derive(Debug, Clone, Copy)]
#[allow(dead_code, reason = "not every bench does everything")]
pub(crate) enum Operation {
    /// A job spawns the next one of its own level, which runs after it.
    SameLevel,
    /// The driver spawns a job of a higher level, which runs as a call.
    HigherLevel,
    /// The driver locks a resource that a higher task uses too.
    Lock,
    /// The driver locks a resource that only it uses.
    LockAlone,
    /// The driver arms a timed job and cancels it.
    ArmAndCancel,
    /// The driver wakes an async task of a higher level, which is polled as a call and waits again.
    Wake,
    /// As [`SameLevel`](Self::SameLevel), while this many timers of the level are armed,
    /// at most 1000.
    SameLevelTimed(u64),
    /// The driver arms as many timers of its level as there are iterations, at most 1000, which are
    /// due at its end. The measured time extends from its end to the end of the last of their jobs.
    DueAtOnce,
    /// Another operation, on the driver's thread.
    Other(fn(u64) -> std::time::Duration),
}

macro_rules! app {
    ($name:ident, $monitor:literal, $trace:literal, $profile:literal $(, $more:ident)* $(,)?) => {
        /// The app.
        pub(crate) mod $name {
            use std::time::Duration;

            use crate::apps::Operation;

            /// Performs the operation `iterations` times and returns the total time.
            pub(crate) fn measure(
                config: punctual::Config,
                operation: Operation,
                iterations: u64,
            ) -> Duration {
                let (answer, took) = std::sync::mpsc::channel();
                let report = app::run(config.trace($trace), operation, iterations, answer);
                report.expect("the app starts");
                took.recv().expect("the driver answers")
            }

            #[punctual::app(main = false, monitor = $monitor, profile = $profile)]
            mod app {
                use std::future::poll_fn;
                use std::sync::mpsc::Sender;
                use std::task::{Poll, Waker};
                use std::time::Instant;

                use super::Operation;
                use punctual::prelude::*;

                #[shared]
                struct Shared {
                    counter: u64,
                    alone: u64,
                    waker: Option<Waker>,
                    #[lock_free]
                    start: Option<Instant>,
                }

                #[local]
                struct Local {
                    answer: Sender<std::time::Duration>,
                }

                #[init]
                fn init(
                    _: init::Context,
                    operation: Operation,
                    iterations: u64,
                    answer: Sender<std::time::Duration>,
                ) -> (Shared, Local) {
                    waits::spawn().expect("it is spawned once");
                    driver::spawn(operation, iterations).expect("it is spawned once");
                    (Shared { counter: 0, alone: 0, waker: None, start: None }, Local { answer })
                }

                #[task(priority = 1, shared = [counter, alone, waker, start])]
                fn driver(mut cx: driver::Context, operation: Operation, iterations: u64) {
                    let start = Instant::now();
                    match operation {
                        Operation::Other(other) => {
                            return done::spawn(other(iterations)).expect("it runs at once");
                        }
                        Operation::SameLevelTimed(timers) => {
                            for i in 0..timers {
                                later::spawn_after((10 + i % 7).minutes(), 0).expect("there is room");
                            }
                            *cx.shared.start = Some(Instant::now());
                            return link::spawn(iterations).expect("it fits");
                        }
                        Operation::DueAtOnce => {
                            let now = punctual::now();
                            for i in 0..iterations {
                                later::spawn_at(now, iterations - 1 - i).expect("there is room");
                            }
                            *cx.shared.start = Some(Instant::now());
                            return;
                        }
                        Operation::SameLevel => {
                            *cx.shared.start = Some(start);
                            return link::spawn(iterations).expect("it fits");
                        }
                        Operation::HigherLevel => {
                            for i in 0..iterations {
                                high::spawn(i).expect("it runs at once");
                            }
                        }
                        Operation::Lock => {
                            for i in 0..iterations {
                                cx.shared.counter.lock(|counter| *counter ^= std::hint::black_box(i));
                            }
                        }
                        Operation::LockAlone => {
                            for i in 0..iterations {
                                cx.shared.alone.lock(|alone| *alone ^= std::hint::black_box(i));
                            }
                        }
                        Operation::ArmAndCancel => {
                            let later = punctual::now() + 10.secs();
                            for i in 0..iterations {
                                let armed = high::spawn_at(later, i).expect("there is room");
                                armed.cancel().expect("it is far off");
                            }
                        }
                        Operation::Wake => {
                            let waker = cx.shared.waker.lock(|waker| waker.clone()).expect("the task waits");
                            for _ in 0..iterations {
                                waker.wake_by_ref();
                            }
                        }
                    }
                    done::spawn(start.elapsed()).expect("it runs at once");
                }

                /// One link of a chain: spawns the next.
                #[task(priority = 1, capacity = 4, shared = [start])]
                fn link(cx: link::Context, left: u64) {
                    match left {
                        0 => {
                            let took = cx.shared.start.map(|start| start.elapsed());
                            done::spawn(took.expect("the driver has set it")).expect("it runs at once");
                        }
                        left => link::spawn(left - 1).expect("one link waits at a time"),
                    }
                }

                /// A timed job; the last one is 0.
                #[task(priority = 1, capacity = 1000, shared = [start])]
                fn later(cx: later::Context, left: u64) {
                    if left == 0 {
                        let took = cx.shared.start.map(|start| start.elapsed());
                        done::spawn(took.expect("the driver has set it")).expect("it runs at once");
                    }
                }

                #[task(priority = 2, capacity = 4, shared = [counter])]
                fn high(_: high::Context, i: u64) {
                    std::hint::black_box(i);
                }

                #[task(priority = 2, shared = [waker], local = [polls: u64 = 0])]
                async fn waits(mut cx: waits::Context) -> ! {
                    poll_fn(|context| {
                        *cx.local.polls += 1;
                        if *cx.local.polls == 1 {
                            cx.shared.waker.lock(|waker| *waker = Some(context.waker().clone()));
                        }
                        Poll::Pending
                    })
                    .await
                }

                $(
                    #[task(priority = 1)]
                    fn $more(_: $more::Context) {}
                )*

                #[task(priority = 2, local = [answer])]
                fn done(cx: done::Context, took: std::time::Duration) {
                    cx.local.answer.send(took).expect("the bench waits for it");
                    punctual::shutdown();
                }
            }
        }
    };
}
