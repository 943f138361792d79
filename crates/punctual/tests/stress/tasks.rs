//! The app under stress: eight levels that spawn, lock and suspend themselves at random.
//!
//! | resource | users | ceiling |
//! |---|---|---|
//! | `a` | idle, 1, 2, both of 4 | 4 |
//! | `b` | 1, 3, 6 | 6 |
//! | `c` | idle, 1, 3, 4, 5 | 5 |
//! | `d` | 2, 7 | 7 |
//! | `pair` (lock-free) | both tasks of level 2 | 2 |

use std::sync::atomic::{AtomicU64, Ordering};

/// How often each resource was visited, in the order `a b c d pair`.
pub(crate) static VISITS: [AtomicU64; 5] = [const { AtomicU64::new(0) }; 5];
/// How often each of the tasks without arguments ran, and the async one was started, in the order `tick fast edge waits`.
pub(crate) static RUNS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

fn count(counters: &[AtomicU64], which: usize) {
    counters[which].fetch_add(1, Ordering::Relaxed);
}

#[punctual::app(main = false)]
pub(crate) mod app {
    use std::os::unix::net::UnixDatagram;
    use std::sync::atomic::Ordering;

    use punctual::Duration;
    use punctual::prelude::*;

    use super::{RUNS, VISITS, count};
    use crate::checks::{Alone, Guarded, violation};
    use crate::ledger::Job;
    use crate::load;
    use crate::random;

    #[shared]
    struct Shared {
        a: Guarded,
        b: Guarded,
        c: Guarded,
        d: Guarded,
        #[lock_free]
        pair: Guarded,
    }

    #[local]
    struct Local {
        inbox: UnixDatagram,
    }

    #[init]
    fn init(_: init::Context, inbox: UnixDatagram) -> (Shared, Local) {
        load::spawn_something();
        let [a, b, c, d, pair] = ["a", "b", "c", "d", "pair"].map(Guarded::new);
        (Shared { a, b, c, d, pair }, Local { inbox })
    }

    /// An ordinary thread in every form, so whoever it blocks has to lend it priority.
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

    #[task(priority = 1, capacity = 8, shared = [a, b, c])]
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

    #[task(priority = 2, capacity = 16, shared = [a, d, pair])]
    fn mixed(cx: mixed::Context, job: Job) {
        let _alone = Alone::at(2);
        job.execute();
        count(&VISITS, 4);
        cx.shared.pair.visit(load::maybe_spawn);
        (cx.shared.a, cx.shared.d).lock(|a, d| {
            count(&VISITS, 0);
            count(&VISITS, 3);
            a.visit(|| d.visit(load::maybe_spawn));
        });
    }

    #[task(priority = 2, capacity = 4, shared = [pair])]
    fn other(cx: other::Context, job: Job) {
        let _alone = Alone::at(2);
        job.execute();
        count(&VISITS, 4);
        cx.shared.pair.visit(load::maybe_spawn);
    }

    #[task(priority = 3, period = 1.millis(), shared = [b, c])]
    fn tick(cx: tick::Context) {
        let _alone = Alone::at(3);
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

    /// Mostly spawned for later; nothing but that releases anything at its level.
    #[task(priority = 4, capacity = 16, shared = [a, c])]
    fn timed(mut cx: timed::Context, job: Job) {
        let _alone = Alone::at(4);
        job.execute();
        cx.shared.c.lock(|c| {
            count(&VISITS, 2);
            c.visit(|| {
                cx.shared.a.lock(|a| {
                    count(&VISITS, 0);
                    a.visit(load::maybe_spawn);
                });
            });
        });
        load::maybe_suspend();
    }

    /// Spawned again and again, waits in between, and is left waiting at the end of a round.
    #[task(priority = 4, shared = [a, c])]
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
    }

    #[task(priority = 5, period = 700.micros(), on_overrun = queue, capacity = 4, shared = [c])]
    fn fast(mut cx: fast::Context) {
        let _alone = Alone::at(5);
        count(&RUNS, 1);
        cx.shared.c.lock(|c| {
            count(&VISITS, 2);
            c.visit(load::maybe_suspend);
        });
    }

    #[task(binds = inbox, priority = 6, local = [inbox], shared = [b])]
    fn edge(mut cx: edge::Context) {
        let _alone = Alone::at(6);
        count(&RUNS, 2);
        // Nothing may be there: jobs are released by `pend` as well.
        let _ = cx.local.inbox.recv(&mut [0; 8]);
        cx.shared.b.lock(|b| {
            count(&VISITS, 1);
            b.visit(load::maybe_spawn);
        });
    }

    #[task(priority = 7, capacity = 8, shared = [d])]
    fn high(mut cx: high::Context, job: Job) {
        let _alone = Alone::at(7);
        job.execute();
        cx.shared.d.lock(|d| {
            count(&VISITS, 3);
            d.visit(load::maybe_spawn);
        });
    }

    #[task(priority = 8, capacity = 4)]
    fn top(_: top::Context, job: Job) {
        let _alone = Alone::at(8);
        job.execute();
        load::maybe_suspend();
        load::maybe_spawn();
    }

    #[shutdown(shared = [a, b, c, d, pair])]
    fn shutdown(cx: shutdown::Context) {
        let resources = [cx.shared.a, cx.shared.b, cx.shared.c, cx.shared.d, cx.shared.pair];
        for (resource, visits) in resources.into_iter().zip(&VISITS) {
            let (kept, counted) = (resource.visits(), visits.swap(0, Ordering::Relaxed));
            if kept != counted {
                violation(&format!("{resource:?} kept {kept} of {counted} visits"));
            }
        }
    }
}
