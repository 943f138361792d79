//! Every way to release a job of another partition, or of another level of the global executor.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use punctual::report::Outcome;

use crate::partitions::{both, two_cpus};

/// Observations of a run.
#[derive(Default)]
pub(crate) struct Seen {
    /// Steps in their order.
    steps: Mutex<Vec<u32>>,
    /// Names of the threads that jobs of `far` ran on.
    threads: Mutex<BTreeSet<String>>,
    ticks: AtomicU32,
    /// The last step has been taken.
    is_last: AtomicBool,
}

/// `step` takes one step after the other, each starting when a job of the other partition has
/// spawned it.
macro_rules! app {
    ($name:ident, [$($args:tt)*], [$($one:tt)*], [$($two:tt)*]) => {
        #[punctual::app(main = false, $($args)*)]
        pub(crate) mod $name {
            use std::io::{Read, Write};
            use std::os::unix::net::UnixStream;
            use std::sync::Arc;
            use std::sync::atomic::Ordering;

            use punctual::prelude::*;
            use punctual::sync::asynch::signal::Signal;

            use super::Seen;

            #[shared]
            struct Shared {
                seen: Arc<Seen>,
            }

            #[local]
            struct Local {
                line: UnixStream,
                other_end: UnixStream,
            }

            #[init]
            fn init(_: init::Context, seen: Arc<Seen>) -> (Shared, Local) {
                let (line, other_end) = UnixStream::pair().expect("sockets can be made");
                line.set_nonblocking(true).expect("it can be made not to block");
                // From `init`, which delays all tasks.
                far::spawn(0).unwrap();
                (Shared { seen }, Local { line, other_end })
            }

            #[task($($one)* priority = 1, shared = [&seen], local = [other_end, news: &'static Signal<u32> = {
                static NEWS: Signal<u32> = Signal::with_slots();
                &NEWS
            }])]
            fn step(cx: step::Context, step: u32) {
                cx.shared.seen.steps.lock().unwrap().push(step);
                let next = step + 1;
                match next {
                    1 => far::spawn(1).unwrap(),
                    2 => drop(far::spawn_after(1.millis(), 2).unwrap()),
                    3 => drop(far::spawn_at(punctual::now(), 3).unwrap()),
                    4 => {
                        let handle = far::spawn_after(1.hours(), 99).unwrap();
                        far::spawn(4).unwrap();
                        assert_eq!(handle.cancel(), Ok(99));
                    }
                    5 => drop(far::spawn_after(1.hours(), 5).unwrap().reschedule_after(1.millis()).unwrap()),
                    6 => {
                        let later = far::spawn_after(1.millis(), 99).unwrap().reschedule_after(1.hours());
                        // On a busy machine it may have been released already.
                        match later {
                            Ok(later) => {
                                far::spawn(6).unwrap();
                                assert_eq!(later.cancel(), Ok(99));
                            }
                            Err(punctual::TooLate) => far::spawn(6).unwrap(),
                        }
                    }
                    7 => {
                        let held = [(); 3].map(|()| far::spawn_after(1.hours(), 99).unwrap());
                        for refused in [far::spawn(7), far::spawn_after(1.hours(), 7).map(drop)] {
                            let is_full = matches!(refused, Err(punctual::SpawnError::Full(7, _)));
                            assert!(is_full, "its capacity is used up: {refused:?}");
                        }
                        held.into_iter().for_each(|held| assert_eq!(held.cancel(), Ok(99)));
                        far::spawn(7).unwrap();
                    }
                    8 => {
                        waits::spawn(*cx.local.news).unwrap();
                        assert!(waits::spawn(*cx.local.news).is_err(), "there is one instance already");
                        cx.local.news.writer().unwrap().write(8);
                    }
                    9 => cx.local.other_end.write_all(b"9").unwrap(),
                    10 => edge::pend(),
                    _ => cx.shared.seen.is_last.store(true, Ordering::Relaxed),
                }
            }

            #[task($($two)* priority = 3, capacity = 3, shared = [&seen])]
            fn far(cx: far::Context, number: u32) {
                let thread = std::thread::current().name().unwrap_or_default().to_owned();
                cx.shared.seen.threads.lock().unwrap().insert(thread);
                if number != 99 {
                    step::spawn(number).unwrap();
                }
            }

            #[task($($two)* priority = 2)]
            async fn waits(_: waits::Context, news: &'static Signal<u32>) {
                let number = news.reader().unwrap().wait().await;
                punctual::delay(1.millis()).await;
                step::spawn(number).unwrap();
            }

            #[task($($two)* binds = line, priority = 4, local = [line])]
            fn edge(cx: edge::Context) {
                let mut read = [0; 8];
                // Nothing, if it was released by `pend`.
                let number = cx.local.line.read(&mut read).map_or(10, |_| u32::from(read[0] - b'0'));
                step::spawn(number).unwrap();
            }

            #[task($($two)* priority = 5, period = 1.millis(), shared = [&seen])]
            fn tick(cx: tick::Context) {
                cx.shared.seen.ticks.fetch_add(1, Ordering::Relaxed);
                // Here, so that there was a tick even if its thread gets the CPU late.
                if cx.shared.seen.is_last.load(Ordering::Relaxed) {
                    punctual::shutdown();
                }
            }
        }
    };
}

app!(parts, [partitions = [one, two]], [core = one,], [core = two,]);
app!(global, [executor = "global"], [], []);

macro_rules! runs {
    ($name:ident, $thread:expr) => {
        let _alone = crate::alone();
        // Twice in each kind of time, in sequence.
        for config in both().into_iter().chain(both()) {
            let seen = std::sync::Arc::new(Seen::default());
            let report = $name::run(config, seen.clone()).expect("the app starts");
            assert_eq!(report.outcome, Outcome::Shutdown, "{report}");
            assert_eq!(*seen.steps.lock().unwrap(), (0..=10).collect::<Vec<_>>());
            let ticks = seen.ticks.load(Ordering::Relaxed);
            assert_eq!((report.task("tick").unwrap().jobs, ticks > 0), (ticks.into(), true));
            assert_eq!(report.dropped_jobs, 0, "{report}");
            let threads = seen.threads.lock().unwrap();
            if !report.virtual_time {
                // Jobs of a partition, or of a level, never run on threads of another.
                assert!(threads.iter().all(|name| name.contains($thread)), "{threads:?}");
            }
            assert_eq!($name::far::spawn(1), Err(punctual::SpawnError::Stopping(1)), "the app has ended");
            let later = $name::far::spawn_after(punctual::Duration::from_millis(1), 1);
            assert_eq!(later.map(drop), Err(punctual::SpawnError::Stopping(1)));
        }
    };
}

#[test]
fn across_partitions() {
    if two_cpus().is_some() {
        runs!(parts, "two ");
    }
}

#[test]
fn works_under_global_executor() {
    runs!(global, "level 3");
}
