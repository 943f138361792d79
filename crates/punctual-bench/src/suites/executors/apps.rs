//! Apps in which a job measures an operation: with default settings, without monitoring, and with a
//! hundred tasks.
//!
//! Each measurement is a run of the app. The job performs all operations in sequence and measures
//! the total time.

use crate::rt::Lack;

/// The operation.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operation {
    /// A job spawns the next one of its level, which runs after it.
    SameLevel,
    /// The same with this many armed timers of the level, at most 1000.
    TimersArmed(u32),
    /// A job of a higher level is spawned and runs at once.
    HigherLevel,
    /// An async task of a higher level is woken, polled, and waits again.
    Wake,
    /// A resource that a higher task also uses.
    Lock,
    /// A job is armed for later and canceled.
    ArmAndCancel,
    /// As many timers as operations, at most 1000, are due; measured until the last of their jobs
    /// has run.
    DueAtOnce,
}

/// Performs an operation this many times on a CPU; returns the ticks, and the refused settings.
pub(super) type Measure = fn(usize, Operation, u32) -> Result<(u64, Lack), String>;

macro_rules! app {
    ($name:ident, $monitor:literal $(, $more:ident)* $(,)?) => {
        pub(super) mod $name {
            use crate::rt::Lack;
            use crate::subject::refused_settings;

            use super::Operation;

            pub(in crate::suites::executors) fn measure(
                cpu: usize,
                operation: Operation,
                operations: u32,
            ) -> Result<(u64, Lack), String> {
                let (answer, took) = std::sync::mpsc::channel();
                let config = punctual::Config::new().cpu(cpu);
                let report = app::run(config, operation, operations, answer).map_err(|error| error.to_string())?;
                let ticks = took.recv().map_err(|_| "the app ended before it was through".to_owned())?;
                Ok((ticks, refused_settings(&report)))
            }

            #[punctual::app(main = false, monitor = $monitor)]
            mod app {
                use std::future::poll_fn;
                use std::sync::mpsc::Sender;
                use std::task::{Poll, Waker};

                use super::Operation;
                use crate::clock;
                use punctual::prelude::*;

                #[shared]
                struct Shared {
                    counter: u64,
                    waker: Option<Waker>,
                    #[lock_free]
                    start: u64,
                }

                #[local]
                struct Local {
                    answer: Sender<u64>,
                }

                #[init]
                fn init(
                    _: init::Context,
                    operation: Operation,
                    operations: u32,
                    answer: Sender<u64>,
                ) -> (Shared, Local) {
                    waits::spawn().expect("it is spawned once");
                    driver::spawn(operation, operations).expect("it is spawned once");
                    (Shared { counter: 0, waker: None, start: 0 }, Local { answer })
                }

                #[task(priority = 1, shared = [counter, waker, start])]
                fn driver(mut cx: driver::Context, operation: Operation, operations: u32) {
                    if let Operation::TimersArmed(timers) = operation {
                        for i in 0..u64::from(timers) {
                            later::spawn_after((10 + i % 7).minutes(), 0).expect("there is room");
                        }
                    }
                    let waker = cx.shared.waker.lock(|waker| waker.clone());
                    let far = punctual::now() + 10.minutes();
                    let from = clock::now();
                    *cx.shared.start = from;
                    match operation {
                        Operation::SameLevel | Operation::TimersArmed(_) => {
                            return link::spawn(operations).expect("it fits");
                        }
                        Operation::DueAtOnce => {
                            let now = punctual::now();
                            for left in (0..operations).rev() {
                                later::spawn_at(now, left).expect("there is room");
                            }
                            *cx.shared.start = clock::now();
                            return;
                        }
                        Operation::HigherLevel => {
                            for i in 0..operations {
                                high::spawn(i).expect("it runs at once");
                            }
                        }
                        Operation::Lock => {
                            for i in 0..operations {
                                cx.shared.counter.lock(|counter| *counter ^= std::hint::black_box(u64::from(i)));
                            }
                        }
                        Operation::ArmAndCancel => {
                            for i in 0..operations {
                                let armed = high::spawn_at(far, i).expect("there is room");
                                armed.cancel().expect("it is far off");
                            }
                        }
                        Operation::Wake => {
                            let waker = waker.expect("the task waits");
                            for _ in 0..operations {
                                waker.wake_by_ref();
                            }
                        }
                    }
                    done::spawn(clock::now() - from).expect("it runs at once");
                }

                /// A link of a chain: spawns the next.
                #[task(priority = 1, capacity = 4, shared = [start])]
                fn link(cx: link::Context, left: u32) {
                    match left {
                        0 => done::spawn(clock::now() - *cx.shared.start).expect("it runs at once"),
                        left => link::spawn(left - 1).expect("one link waits at a time"),
                    }
                }

                /// A job of a timer; the last one is 0.
                #[task(priority = 1, capacity = 1000, shared = [start])]
                fn later(cx: later::Context, left: u32) {
                    if left == 0 {
                        done::spawn(clock::now() - *cx.shared.start).expect("it runs at once");
                    }
                }

                #[task(priority = 2, capacity = 4, shared = [counter])]
                fn high(_: high::Context, i: u32) {
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
                fn done(cx: done::Context, ticks: u64) {
                    // If the receiver is gone, the run has failed elsewhere.
                    let _ = cx.local.answer.send(ticks);
                    punctual::shutdown();
                }
            }
        }
    };
}

app!(plain, false);
app!(monitored, true);
// A hundred tasks, including the six that each app has.
#[rustfmt::skip]
app!(
    many, false,
    t00, t01, t02, t03, t04, t05, t06, t07, t08, t09, t10, t11, t12, t13, t14, t15, t16, t17, t18, t19, t20, t21, t22, t23,
    t24, t25, t26, t27, t28, t29, t30, t31, t32, t33, t34, t35, t36, t37, t38, t39, t40, t41, t42, t43, t44, t45, t46, t47,
    t48, t49, t50, t51, t52, t53, t54, t55, t56, t57, t58, t59, t60, t61, t62, t63, t64, t65, t66, t67, t68, t69, t70, t71,
    t72, t73, t74, t75, t76, t77, t78, t79, t80, t81, t82, t83, t84, t85, t86, t87, t88, t89, t90, t91, t92, t93
);
