//! The app under stress: eight levels that spawn, lock and suspend themselves at random; once for
//! each kind of executor.
//!
//! | resource | users, of the second partition in brackets | ceiling in one partition |
//! |---|---|---|
//! | `a` | idle, 1, 2, 4, \[4\] | 4 |
//! | `b` | 1, \[3\], \[6\] | 6 |
//! | `c` | idle, 1, 4, \[3\], \[4\], \[5\] | 5 |
//! | `d` | 2, 7 | 7 |
//! | `e` | \[5\], \[8\] | 8 |
//! | `f` | 7, \[8\] | 8 |
//! | `pair` (lock-free) | both tasks of level 2 | 2 |
//!
//! Across partitions `a`, `b` and `c` are one group and `f` another, while `d` and `e` have their
//! ceilings.

use std::sync::atomic::{AtomicU64, Ordering};

use punctual::sync::asynch::signal::Signal;

/// Number of visits of each resource, in the order `a b c d e f pair`.
pub(crate) static VISITS: [AtomicU64; 7] = [const { AtomicU64::new(0) }; 7];
/// Number of runs of each task without arguments, and of starts of the async one, in the order
/// `tick fast edge waits`.
pub(crate) static RUNS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
/// Signal that `waits` waits for in addition to times; sent by all tasks.
pub(crate) static NEWS: Signal<u32> = Signal::with_slots();
/// Number of times that `waits` has ended.
pub(crate) static WAITED: AtomicU64 = AtomicU64::new(0);

fn count(counters: &[AtomicU64], which: usize) {
    counters[which].fetch_add(1, Ordering::Relaxed);
}

/// An app with these arguments, whose tasks are in two parts. The second group of arguments is the
/// configuration of a task in each part; the lane of a level in the second part is offset by this
/// much.
macro_rules! app {
    ($name:ident, cpus = $cpus:expr, [$($args:tt)*], [$($one:tt)*], [$($two:tt)*], $fallback:expr) => {
        #[punctual::app(main = false, $($args)*)]
        pub(crate) mod $name {
            use std::os::unix::net::UnixDatagram;
            use std::sync::atomic::Ordering;

            use punctual::Duration;
            use punctual::prelude::*;

            use super::{NEWS, RUNS, VISITS, WAITED, count};
            use crate::checks::{Alone, Guarded, violation};
            use crate::kinds::Kind;
            use crate::ledger::Job;
            use crate::load;
            use crate::random;

            pub(crate) const KIND: Kind = Kind {
                name: stringify!($name),
                cpus: $cpus,
                run,
                low: (1, low::spawn),
                mixed: (2, mixed::spawn),
                other: (2, other::spawn),
                timed: (FALLBACK + 4, timed::spawn),
                timed_at: timed::spawn_at,
                timed_after: timed::spawn_after,
                waits: (4, waits::spawn),
                high: (7, high::spawn),
                top: (FALLBACK + 8, top::spawn),
                pend_edge: edge::pend,
            };

            const FALLBACK: usize = $fallback;

            #[shared]
            struct Shared {
                a: Guarded,
                b: Guarded,
                c: Guarded,
                d: Guarded,
                e: Guarded,
                f: Guarded,
                #[lock_free]
                pair: Guarded,
            }

            #[local]
            struct Local {
                inbox: UnixDatagram,
            }

            #[init]
            fn init(_: init::Context, inbox: UnixDatagram) -> (Shared, Local) {
                load::begin();
                let [a, b, c, d, e, f, pair] = ["a", "b", "c", "d", "e", "f", "pair"].map(Guarded::new);
                (Shared { a, b, c, d, e, f, pair }, Local { inbox })
            }

            /// An ordinary thread in every form, so a thread that it blocks has to lend it
            /// priority.
            #[idle(shared = [a, c])]
            fn idle(mut cx: idle::Context) -> ! {
                loop {
                    cx.shared.a.lock(|a| {
                        count(&VISITS, 0);
                        a.visit(|| {
                            cx.shared.c.lock(|c| {
                                count(&VISITS, 2);
                                c.visit(load::maybe_spawn);
                            });
                        });
                    });
                    if random::one_in(16) {
                        punctual::wait_for_event();
                    } else {
                        random::pause(20, 200);
                    }
                }
            }

            #[task($($one)* priority = 1, capacity = 8, shared = [a, b, c])]
            fn low(mut cx: low::Context, job: Job) {
                let _alone = Alone::at(1);
                job.execute();
                match random::below(3) {
                    0 => cx.shared.a.lock(|a| {
                        count(&VISITS, 0);
                        a.visit(|| {
                            cx.shared.b.lock(|b| {
                                count(&VISITS, 1);
                                b.visit(load::maybe_spawn);
                            });
                            load::maybe_spawn();
                        });
                    }),
                    1 => cx.shared.b.lock(|b| {
                        count(&VISITS, 1);
                        b.visit(|| {
                            cx.shared.a.lock(|a| {
                                count(&VISITS, 0);
                                a.visit(load::maybe_spawn);
                            });
                        });
                    }),
                    _ => cx.shared.c.lock(|c| {
                        count(&VISITS, 2);
                        c.visit(load::maybe_spawn);
                    }),
                }
                load::maybe_spawn();
            }

            #[task($($one)* priority = 2, capacity = 16, shared = [a, d, pair])]
            fn mixed(cx: mixed::Context, job: Job) {
                let _alone = Alone::at(2);
                job.execute();
                count(&VISITS, 6);
                cx.shared.pair.visit(load::maybe_spawn);
                (cx.shared.a, cx.shared.d).lock(|a, d| {
                    count(&VISITS, 0);
                    count(&VISITS, 3);
                    a.visit(|| d.visit(load::maybe_spawn));
                });
            }

            #[task($($one)* priority = 2, capacity = 4, shared = [pair])]
            fn other(cx: other::Context, job: Job) {
                let _alone = Alone::at(2);
                job.execute();
                count(&VISITS, 6);
                cx.shared.pair.visit(load::maybe_spawn);
            }

            #[task($($two)* priority = 3, period = 1.millis(), shared = [b, c])]
            fn tick(cx: tick::Context) {
                let _alone = Alone::at(FALLBACK + 3);
                count(&RUNS, 0);
                load::maybe_suspend();
                let (mut b, mut c) = (cx.shared.b, cx.shared.c);
                if random::one_in(2) {
                    b.lock(|b| {
                        count(&VISITS, 1);
                        b.visit(|| {
                            c.lock(|c| {
                                count(&VISITS, 2);
                                c.visit(load::maybe_spawn);
                            });
                        });
                    });
                } else {
                    c.lock(|c| {
                        count(&VISITS, 2);
                        c.visit(|| {
                            b.lock(|b| {
                                count(&VISITS, 1);
                                b.visit(load::maybe_spawn);
                            });
                        });
                    });
                }
            }

            /// Usually spawned for later; its level has no other task.
            #[task($($two)* priority = 4, capacity = 16, shared = [a, c])]
            fn timed(cx: timed::Context, job: Job) {
                let _alone = Alone::at(FALLBACK + 4);
                job.execute();
                let (mut a, mut c) = (cx.shared.a, cx.shared.c);
                if random::one_in(2) {
                    c.lock(|c| {
                        count(&VISITS, 2);
                        c.visit(|| {
                            a.lock(|a| {
                                count(&VISITS, 0);
                                a.visit(load::maybe_spawn);
                            });
                        });
                    });
                } else {
                    a.lock(|a| {
                        count(&VISITS, 0);
                        a.visit(|| {
                            c.lock(|c| {
                                count(&VISITS, 2);
                                c.visit(load::maybe_spawn);
                            });
                        });
                    });
                }
                load::maybe_suspend();
            }

            /// Spawned repeatedly, waits in between, and is left waiting at the end of a round.
            #[task($($one)* priority = 4, shared = [a, c])]
            async fn waits(mut cx: waits::Context, job: Job) {
                job.execute();
                count(&RUNS, 3);
                for _ in 0..random::below(4) {
                    let limit = Duration::from_micros(random::below(800));
                    let _ =
                        punctual::timeout_after(limit, punctual::delay(Duration::from_micros(random::below(800))))
                            .await;
                    let _alone = Alone::at(4);
                    cx.shared.a.lock(|a| {
                        count(&VISITS, 0);
                        a.visit(load::maybe_spawn);
                    });
                    cx.shared.c.lock(|c| {
                        count(&VISITS, 2);
                        c.visit(load::maybe_suspend);
                    });
                }
                // The code that starts it again sends the signal, so the wait has no limit.
                if random::one_in(2) {
                    NEWS.reader().unwrap().wait().await;
                    let _alone = Alone::at(4);
                    cx.shared.a.lock(|a| {
                        count(&VISITS, 0);
                        a.visit(load::maybe_suspend);
                    });
                }
                WAITED.fetch_add(1, Ordering::Relaxed);
            }

            #[task($($two)* priority = 5, period = 700.micros(), on_overrun = queue, capacity = 4, shared = [c, e])]
            fn fast(mut cx: fast::Context) {
                let _alone = Alone::at(FALLBACK + 5);
                count(&RUNS, 1);
                cx.shared.c.lock(|c| {
                    count(&VISITS, 2);
                    c.visit(load::maybe_suspend);
                });
                cx.shared.e.lock(|e| {
                    count(&VISITS, 4);
                    e.visit(load::maybe_spawn);
                });
            }

            #[task($($two)* binds = inbox, priority = 6, local = [inbox], shared = [b])]
            fn edge(mut cx: edge::Context) {
                let _alone = Alone::at(FALLBACK + 6);
                count(&RUNS, 2);
                // There may be no data: jobs are released by `pend` as well.
                let _ = cx.local.inbox.recv(&mut [0; 8]);
                cx.shared.b.lock(|b| {
                    count(&VISITS, 1);
                    b.visit(load::maybe_spawn);
                });
            }

            #[task($($one)* priority = 7, capacity = 8, shared = [d, f])]
            fn high(mut cx: high::Context, job: Job) {
                let _alone = Alone::at(7);
                job.execute();
                cx.shared.d.lock(|d| {
                    count(&VISITS, 3);
                    d.visit(|| {
                        cx.shared.f.lock(|f| {
                            count(&VISITS, 5);
                            f.visit(load::maybe_spawn);
                        });
                    });
                });
            }

            #[task($($two)* priority = 8, capacity = 4, shared = [e, f])]
            fn top(mut cx: top::Context, job: Job) {
                let _alone = Alone::at(FALLBACK + 8);
                job.execute();
                cx.shared.f.lock(|f| {
                    count(&VISITS, 5);
                    f.visit(|| {
                        cx.shared.e.lock(|e| {
                            count(&VISITS, 4);
                            e.visit(load::maybe_spawn);
                        });
                    });
                });
                load::maybe_suspend();
                load::maybe_spawn();
            }

            #[shutdown(shared = [a, b, c, d, e, f, pair])]
            fn shutdown(cx: shutdown::Context) {
                let shared = cx.shared;
                let resources =
                    [shared.a, shared.b, shared.c, shared.d, shared.e, shared.f, shared.pair];
                for (resource, visits) in resources.into_iter().zip(&VISITS) {
                    let (retained, counted) = (resource.visits(), visits.swap(0, Ordering::Relaxed));
                    if retained != counted {
                        violation(&format!("{resource:?} kept {retained} of {counted} visits"));
                    }
                }
            }
        }
    };
}

app!(sole, cpus = 1, [], [], [], 0);
app!(two, cpus = 2, [partitions = [one, two]], [core = one,], [core = two,], crate::checks::LEVELS);
app!(polling, cpus = 2, [partitions = [one, two(poll)]], [core = one,], [core = two,], crate::checks::LEVELS);
app!(global, cpus = 1, [executor = "global"], [], [], 0);
