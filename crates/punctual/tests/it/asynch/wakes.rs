//! Wakes of a task: by a task above, below, in another partition, by itself, and by foreign
//! threads.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::asynch::virtual_time;
use crate::log::Log;

/// A count that a task waits for, and others increment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Event(Arc<Mutex<(u32, Option<Waker>)>>);

impl Event {
    pub(crate) fn signal(&self) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.0 += 1;
        let waker = inner.1.clone();
        drop(inner);
        waker.iter().for_each(Waker::wake_by_ref);
    }

    /// Waits for the next increment.
    pub(crate) fn signaled(&self) -> Signaled {
        Signaled(self.clone())
    }
}

pub(crate) struct Signaled(Event);

impl Future for Signaled {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.1 = Some(cx.waker().clone());
        match inner.0.checked_sub(1) {
            Some(left) => {
                inner.0 = left;
                Poll::Ready(())
            }
            None => Poll::Pending,
        }
    }
}

mod levels {
    use super::*;

    #[punctual::app(main = false)]
    mod app {
        use punctual::prelude::*;

        use super::Event;
        use crate::log::Log;

        #[shared]
        struct Shared {
            log: Log,
            event: Event,
            lock: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context, log: Log, event: Event) -> (Shared, Local) {
            waits::spawn().unwrap();
            below::spawn().unwrap();
            (Shared { log, event, lock: 0 }, Local {})
        }

        #[task(priority = 2, shared = [&log, &event, lock])]
        async fn waits(mut cx: waits::Context) {
            for what in ["from below", "after the lock", "from beside", "from above", "from itself"] {
                cx.shared.event.signaled().await;
                cx.shared.log.note(what);
                cx.shared.lock.lock(|lock| *lock += 1);
                if what == "from above" {
                    cx.shared.event.signal();
                }
            }
        }

        #[task(priority = 1, shared = [&log, &event, lock])]
        fn below(mut cx: below::Context) {
            cx.shared.log.note("below begins");
            cx.shared.event.signal();
            cx.shared.log.note("below was preempted");
            cx.shared.lock.lock(|_| {
                cx.shared.event.signal();
                cx.shared.log.note("below was not, in a lock");
            });
            beside::spawn().unwrap();
            above::spawn().unwrap();
            cx.shared.log.note("below ends");
        }

        #[task(priority = 2, shared = [&log, &event])]
        fn beside(cx: beside::Context) {
            cx.shared.event.signal();
            cx.shared.log.note("beside ends");
        }

        #[task(priority = 3, shared = [&log, &event])]
        fn above(cx: above::Context) {
            cx.shared.event.signal();
            cx.shared.log.note("above ends");
        }
    }

    #[test]
    fn wake_is_a_preemption_point() {
        let log = Log::default();
        let report = app::run(virtual_time(), log.clone(), Event::default()).unwrap();
        let order: Vec<_> = log.take().into_iter().map(|(_, what)| what).collect();
        assert_eq!(
            order,
            [
                "below begins",
                "from below",
                "below was preempted",
                "below was not, in a lock",
                "after the lock",
                "beside ends",
                "from beside",
                "above ends",
                "from above",
                "from itself",
                "below ends",
            ]
        );
        // The first poll and one for each wake, except that from itself, which found the task in
        // its last poll.
        assert_eq!(report.task("waits").unwrap().jobs, 5);
    }
}

mod foreign {
    use super::*;

    #[punctual::app(main = false)]
    mod app {
        use super::Event;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context, event: Event) -> (Shared, Local) {
            counts::spawn(event).unwrap();
            (Shared {}, Local {})
        }

        #[task(priority = 2)]
        async fn counts(_: counts::Context, event: Event) {
            for _ in 0..1000 {
                event.signaled().await;
            }
            punctual::shutdown();
        }
    }

    /// On threads: the test hangs if a wake is lost.
    #[test]
    fn foreign_threads_wake_task() {
        let _alone = crate::alone();
        let event = Event::default();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..500).for_each(|_| event.signal()));
            }
            app::run(punctual::Config::new(), event.clone()).unwrap();
        });
        // A waker outlives the app, and then does nothing; it does nothing in the app's next run
        // either.
        event.signal();
        let again = Event::default();
        (0..1000).for_each(|_| again.signal());
        let report = app::run(virtual_time(), again).unwrap();
        event.signal();
        assert_eq!(report.task("counts").unwrap().jobs, 1);
    }
}
