//! Values of local tasks are dropped on their thread at the end of a run, in every kind of ending.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use punctual::report::Outcome;
use punctual::{Config, Duration};

use crate::asynch::local::{Pinned, Witness};
use crate::asynch::virtual_time;

/// Scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// A poll panics, with an instance waiting and another that is never polled.
    PanicInPoll,
    /// A value in a future panics when it is dropped at the end.
    PanicInDrop,
    /// A value in a future wakes and spawns when it is dropped at the end.
    SpawnInDrop,
    /// `init` panics, so that nothing is ever polled.
    PanicInInit,
}

/// A message that is sent, and counts its drops.
#[derive(Debug)]
struct Sent(Arc<AtomicU32>);

impl Drop for Sent {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

macro_rules! app {
    ($name:ident, [$($args:tt)*]) => {
        #[punctual::app(main = false, $($args)*)]
        mod $name {
            use std::sync::Arc;
            use std::task::Waker;

            use punctual::prelude::*;

            use super::{Manner, Pinned, Sent, Witness};

            #[shared]
            struct Shared {
                witness: Arc<Witness>,
                waker: Option<Waker>,
            }

            #[local]
            struct Local {}

            #[init]
            fn init(_: init::Context, witness: Arc<Witness>, sent: Sent, manner: Manner) -> (Shared, Local) {
                assert!(starts::spawn(sent, manner).is_ok());
                assert!(manner != Manner::PanicInInit, "in init");
                (Shared { witness, waker: None }, Local {})
            }

            #[task(priority = 2, shared = [&witness])]
            async fn starts(cx: starts::Context, _sent: Sent, manner: Manner) {
                let pin = || cx.shared.witness.pin();
                let _kept = pin();
                assert!(cx.local_spawner.first(pin(), manner).is_ok());
                assert!(cx.local_spawner.second(pin()).is_ok());
                punctual::delay(1.millis()).await;
                if manner == Manner::PanicInPoll {
                    assert!(cx.local_spawner.late(pin()).is_ok());
                    panic!("in a poll");
                }
                punctual::shutdown();
                std::future::pending::<()>().await;
            }

            /// Performs an action when it is dropped.
            struct Ends<'a> {
                manner: Manner,
                spawner: first::LocalSpawner<'a>,
                waker: Option<Waker>,
                pinned: Pinned,
            }

            impl Drop for Ends<'_> {
                fn drop(&mut self) {
                    self.pinned.touch();
                    match self.manner {
                        Manner::PanicInDrop => panic!("in a destructor"),
                        Manner::SpawnInDrop => {
                            self.waker.iter().for_each(Waker::wake_by_ref);
                            assert!(self.spawner.late(self.pinned.another()).is_ok(), "dropped, and no error");
                            assert!(beside::spawn(0).is_ok());
                        }
                        _ => {}
                    }
                }
            }

            #[task(priority = 2, local_task, shared = [&witness, waker])]
            async fn first(mut cx: first::Context, pinned: Pinned, manner: Manner) {
                let mut ends = Ends { manner, spawner: cx.local_spawner, waker: None, pinned };
                punctual::delay(200.micros()).await;
                ends.waker = cx.shared.waker.lock(|waker| waker.clone());
                assert!(ends.waker.is_some(), "the second has been polled");
                std::future::pending::<()>().await;
                drop(ends);
            }

            #[task(priority = 2, local_task, shared = [waker])]
            async fn second(mut cx: second::Context, pinned: Pinned) {
                std::future::poll_fn(|context| {
                    pinned.touch();
                    cx.shared.waker.lock(|waker| *waker = Some(context.waker().clone()));
                    std::task::Poll::<()>::Pending
                })
                .await;
            }

            #[task(priority = 2, local_task)]
            async fn late(_: late::Context, pinned: Pinned) {
                pinned.touch();
                unreachable!("it is spawned at the end");
            }

            #[task(priority = 2)]
            async fn beside(_: beside::Context, _: u32) {}

            /// Gives each partition of a run a task.
            #[task(priority = 1)]
            fn below(_: below::Context) {}
        }
    };
}

app!(levels, []);
app!(polls, [partitions = [polls(poll)]]);
app!(global, [executor = "global"]);

fn ends(config: &dyn Fn() -> Config) {
    let manners = [Manner::PanicInPoll, Manner::PanicInDrop, Manner::SpawnInDrop, Manner::PanicInInit];
    for (manner, run) in
        manners.into_iter().flat_map(|m| [levels::run, polls::run, global::run].map(|r| (m, r)))
    {
        let (witness, drops) = (Arc::<Witness>::default(), Arc::<AtomicU32>::default());
        let report = run(config(), Arc::clone(&witness), Sent(Arc::clone(&drops)), manner).unwrap();
        let (words, expected) = match manner {
            Manner::PanicInPoll => (Some("in a poll"), 4),
            Manner::PanicInDrop => (Some("in a destructor"), 3),
            Manner::SpawnInDrop => (None, 4),
            Manner::PanicInInit => (Some("in init"), 0),
        };
        match (&report.outcome, words) {
            (Outcome::Shutdown, None) => {}
            (Outcome::Panicked { message, .. }, Some(words)) => assert!(message.contains(words), "{message}"),
            (outcome, _) => panic!("{manner:?}: {outcome:?}"),
        }
        assert_eq!(drops.load(Ordering::Relaxed), 1, "{manner:?}: the message is dropped once");
        if expected > 0 {
            assert_eq!(witness.check(), expected, "{manner:?}");
        }
        if manner == Manner::PanicInPoll {
            assert!(report.dropped_jobs > 0, "what was spawned last has not been polled");
        }
    }
}

#[test]
fn drops_remaining_values_on_their_thread() {
    let _alone = crate::alone();
    ends(&virtual_time);
    ends(&|| Config::new().until(Duration::from_secs(30)));
}
