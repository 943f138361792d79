//! Local tasks: for every waker and every executor, one thread creates, polls and drops their
//! values.

use std::collections::HashSet;
use std::marker::PhantomData;
use std::process::Command;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};

use punctual::report::{Outcome, Report};
use punctual::{Config, Duration, StartError};
use punctual_process::child::{BoundedCommand, TEST_LIMIT};

use crate::asynch::virtual_time;
use crate::asynch::wakes::Event;
use crate::privileges::unprivileged;

/// Records the fate of all pinned values of a run.
#[derive(Default)]
pub(crate) struct Witness {
    threads: Mutex<HashSet<ThreadId>>,
    /// Uses on a thread other than the creating one.
    strays: AtomicU32,
    made: AtomicU32,
    dropped: AtomicU32,
}

/// A value that must not leave the thread that created it, and reports if it does.
pub(crate) struct Pinned {
    home: ThreadId,
    witness: Arc<Witness>,
    not_send: PhantomData<Rc<()>>,
}

impl Witness {
    pub(crate) fn pin(self: &Arc<Self>) -> Pinned {
        self.made.fetch_add(1, Ordering::Relaxed);
        let pinned =
            Pinned { home: thread::current().id(), witness: Arc::clone(self), not_send: PhantomData };
        pinned.touch();
        pinned
    }

    /// Checks that all are dropped; returns their number.
    pub(crate) fn check(&self) -> u32 {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner).len();
        let [strays, made, dropped] =
            [&self.strays, &self.made, &self.dropped].map(|count| count.load(Ordering::Relaxed));
        assert_eq!((threads, strays), (1, 0), "everything is done on one thread");
        assert_eq!(made, dropped, "everything is dropped by now");
        made
    }
}

impl Pinned {
    /// Creates another value that must not leave this thread.
    pub(crate) fn another(&self) -> Self {
        self.witness.pin()
    }

    pub(crate) fn touch(&self) {
        let here = thread::current().id();
        self.witness.threads.lock().unwrap_or_else(PoisonError::into_inner).insert(here);
        self.witness.strays.fetch_add((here != self.home).into(), Ordering::Relaxed);
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.touch();
        self.witness.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// An app whose level 2 is local. Its tasks are released by each other, from below, from above, by
/// the clock and by descriptors.
macro_rules! app {
    ($name:ident, [$($args:tt)*], [$($core:tt)*]) => {
        #[punctual::app(main = false, $($args)*)]
        mod $name {
            use std::io::{Read, Write};
            use std::os::unix::net::UnixStream;
            use std::rc::Rc;
            use std::sync::Arc;

            use punctual::prelude::*;

            use super::{Event, Pinned, Witness};

            #[shared]
            struct Shared {
                witness: Arc<Witness>,
                event: Event,
                rounds: u32,
            }

            #[local]
            struct Local {
                near: UnixStream,
                far: UnixStream,
            }

            #[init]
            fn init(_: init::Context, witness: Arc<Witness>, event: Event) -> (Shared, Local) {
                assert!(starts::spawn("a message that is sent").is_ok());
                let (near, far) = UnixStream::pair().unwrap();
                // There is no reader when the app stops.
                far.set_nonblocking(true).unwrap();
                (Shared { witness, event, rounds: 0 }, Local { near, far })
            }

            /// Not a local task. Its future stays on the level's thread nevertheless.
            #[task(priority = 2, shared = [&witness, &event, rounds], $($core)*)]
            async fn starts(mut cx: starts::Context, _: &'static str) {
                let retained = Rc::new(cx.shared.witness.pin());
                assert!(cx.local_spawner.waits(Rc::clone(&retained)).is_ok());
                while cx.shared.rounds.lock(|rounds| *rounds) < 20 {
                    cx.shared.event.signaled().await;
                    retained.touch();
                    if let Err(full) = cx.local_spawner.echoes(Rc::clone(&retained), 1) {
                        let (retained, _) = full.into_inner();
                        retained.touch();
                        punctual::delay(100.micros()).await;
                    }
                }
                punctual::shutdown();
                assert!(cx.local_spawner.echoes(Rc::clone(&retained), 1).is_ok(), "dropped, and no error");
                std::future::pending::<()>().await;
            }

            #[task(priority = 2, local_task, shared = [&witness, rounds], $($core)*)]
            async fn echoes(mut cx: echoes::Context, retained: Rc<Pinned>, by: u32) {
                let own = cx.shared.witness.pin();
                retained.touch();
                punctual::delay(100.micros()).await;
                retained.touch();
                own.touch();
                cx.shared.rounds.lock(|rounds| *rounds += by);
            }

            /// It stays behind.
            #[task(priority = 2, local_task, $($core)*)]
            async fn waits(_: waits::Context, retained: Rc<Pinned>) {
                punctual::delay(1.secs()).await;
                retained.touch();
                std::future::pending::<()>().await;
            }

            #[task(priority = 2, period = 300.micros(), shared = [&witness], $($core)*)]
            fn ticks(cx: ticks::Context) {
                let pinned = Rc::new(cx.shared.witness.pin());
                drop(cx.local_spawner.echoes(pinned, 0));
            }

            #[task(priority = 2, shared = [&witness], $($core)*)]
            fn beside(cx: beside::Context) {
                cx.shared.witness.pin();
            }

            #[task(priority = 2, binds = near, local = [near], shared = [&witness], $($core)*)]
            fn hears(cx: hears::Context) {
                cx.local.near.read_exact(&mut [0]).unwrap();
                drop(cx.local_spawner.echoes(Rc::new(cx.shared.witness.pin()), 0));
            }

            #[task(priority = 1, period = 200.micros(), shared = [&event], $($core)*)]
            fn below(cx: below::Context) {
                cx.shared.event.signal();
                let _ = beside::spawn();
            }

            /// In another partition, if there is one.
            #[task(priority = 3, period = 700.micros(), shared = [&event, rounds], local = [far])]
            fn above(mut cx: above::Context) {
                let _ = cx.local.far.write(&[0]);
                cx.shared.rounds.lock(|_| {
                    cx.shared.event.signal();
                    let _ = beside::spawn();
                });
            }

            #[shutdown(shared = [witness])]
            fn shutdown(cx: shutdown::Context) {
                assert!(cx.shared.witness.check() > 20);
            }
        }
    };
}

app!(one, [], []);
app!(second, [partitions = [first, second]], [core = second]);
app!(polls, [partitions = [other, polls(poll)]], [core = polls]);
app!(global, [executor = "global"], []);

mod descriptors {
    use super::*;

    #[punctual::app(main = false)]
    mod app {
        use std::io::{Read, Write};
        use std::os::unix::net::UnixStream;
        use std::rc::Rc;
        use std::sync::Arc;

        use super::{Pinned, Witness};

        #[shared]
        struct Shared {
            witness: Arc<Witness>,
        }

        #[local]
        struct Local {
            far: UnixStream,
        }

        #[init]
        fn init(_: init::Context, witness: Arc<Witness>) -> (Shared, Local) {
            let (near, far) = UnixStream::pair().unwrap();
            starts::spawn(near).unwrap();
            (Shared { witness }, Local { far })
        }

        #[task(priority = 2, shared = [&witness])]
        fn starts(cx: starts::Context, near: UnixStream) {
            assert!(cx.local_spawner.reads(Rc::new(near), cx.shared.witness.pin()).is_ok());
        }

        /// The thread that waits for descriptors is at this level, and wakes it.
        #[task(priority = 2, local_task)]
        async fn reads(_: reads::Context, near: Rc<UnixStream>, pinned: Pinned) {
            for _ in 0..5 {
                punctual::readable(&near).await.unwrap();
                pinned.touch();
                (&*near).read_exact(&mut [0]).unwrap();
            }
            punctual::shutdown();
        }

        #[task(priority = 1, period = 1.millis(), local = [far])]
        fn writes(cx: writes::Context) {
            let _ = cx.local.far.write(&[0]);
        }
    }

    #[test]
    fn local_task_waits_for_descriptor() {
        let _alone = crate::alone();
        for config in [virtual_time(), Config::new().until(Duration::from_secs(30))] {
            let witness = Arc::<Witness>::default();
            assert_eq!(app::run(config, Arc::clone(&witness)).unwrap().outcome, Outcome::Shutdown);
            assert_eq!(witness.check(), 1);
        }
    }
}

type Run = fn(Config, Arc<Witness>, Event) -> Result<Report, StartError>;

const RUNS: [Run; 4] = [one::run, second::run, polls::run, global::run];

/// Signals the event from a foreign thread while the app runs.
fn run_with_a_stranger(run: Run, config: Config) {
    let (witness, event) = (Arc::<Witness>::default(), Event::default());
    let stranger = thread::spawn({
        let event = event.clone();
        move || {
            for _ in 0..200 {
                event.signal();
                thread::yield_now();
            }
        }
    });
    let report = run(config, Arc::clone(&witness), event).unwrap();
    assert_eq!(report.outcome, Outcome::Shutdown);
    stranger.join().unwrap();
    witness.check();
}

/// Each app in virtual time and on threads, in alternation.
#[test]
fn stays_on_one_thread() {
    let _alone = crate::alone();
    for run in RUNS {
        for _ in 0..2 {
            run_with_a_stranger(run, virtual_time());
            run_with_a_stranger(run, Config::new().until(Duration::from_secs(30)));
        }
    }
}

#[test]
fn stays_on_one_thread_without_privileges() {
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "asynch::local::stays_on_one_thread"]);
    assert!(unprivileged(&again).status_within(TEST_LIMIT).unwrap().success());
}
