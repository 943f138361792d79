//! Delays whose timer is over although their task does not know it: it has expired but its job has
//! not run, or its run has ended.

use std::future::Future;
use std::sync::Mutex;
use std::task::Poll;

use punctual::report::Outcome;
use punctual::{Config, Delay, Duration};

use crate::asynch::virtual_time;

/// Polls a delay once.
async fn begin(delay: &mut Delay) {
    std::future::poll_fn(|cx| {
        assert!(std::pin::Pin::new(&mut *delay).poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
}

mod expired {
    use super::*;

    #[punctual::app(main = false)]
    mod app {
        use punctual::prelude::*;

        use crate::asynch::wakes::Event;

        #[shared]
        struct Shared {
            event: Event,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            waits::spawn().unwrap();
            (Shared { event: Event::default() }, Local {})
        }

        /// Woken at 1 ms, and by its timer at 2 ms; runs at 3 ms.
        #[task(priority = 1, waits = 1, shared = [&event])]
        async fn waits(cx: waits::Context) {
            let mut delay = punctual::delay(2.millis());
            super::begin(&mut delay).await;
            cx.shared.event.signaled().await;
            delay.await;
            assert_eq!(punctual::now(), punctual::Instant::from_ticks(3_000_000));
            // Its timer's job has not run yet.
            punctual::delay(2.millis()).await;
            assert_eq!(punctual::now(), punctual::Instant::from_ticks(5_000_000));
            punctual::shutdown();
        }

        #[task(priority = 2, period = 10.millis(), offset = 1.millis(), shared = [&event])]
        fn occupies(cx: occupies::Context) {
            cx.shared.event.signal();
            punctual::spend(2.millis());
        }
    }

    #[test]
    fn expired_delay_does_not_count_as_wait() {
        let report = app::run(virtual_time()).expect("the app starts");
        assert_eq!(report.outcome, Outcome::Shutdown);
    }
}

mod kept {
    use super::*;

    static KEPT: Mutex<Option<Delay>> = Mutex::new(None);

    #[punctual::app(main = false)]
    mod app {
        use punctual::prelude::*;

        use super::KEPT;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            waits::spawn().unwrap();
            (Shared {}, Local {})
        }

        #[task]
        async fn waits(_: waits::Context) {
            let kept = KEPT.lock().unwrap().take();
            if let Some(kept) = kept {
                kept.await;
            } else {
                let mut delay = punctual::delay(100.millis());
                super::begin(&mut delay).await;
                *KEPT.lock().unwrap() = Some(delay);
            }
            punctual::shutdown();
        }
    }

    #[test]
    fn delay_of_ended_run_ends_in_next_one() {
        let _alone = crate::alone();
        for config in [virtual_time(), Config::new()] {
            for _ in 0..2 {
                let config = config.clone().until(Duration::from_secs(20));
                let report = app::run(config).expect("the app starts");
                assert_eq!(report.outcome, Outcome::Shutdown);
            }
        }
    }
}
