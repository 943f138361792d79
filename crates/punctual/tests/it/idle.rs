//! An `idle` that never returns, in virtual time.

/// An `idle` in virtual time that neither returns nor waits for events.
mod endless {
    use crate::process;

    #[punctual::app(main = false)]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[idle]
        fn idle(_: idle::Context) -> ! {
            loop {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }

        #[task(period = 10.millis())]
        fn never_again(_: never_again::Context) {}
    }

    #[test]
    #[ignore = "a program that the other test runs"]
    fn program() {
        app::run(punctual::Config::new().virtual_time()).expect("the app starts");
    }

    #[test]
    fn warns_that_idle_stops_virtual_time() {
        let mut running = process::start(process::program("idle::endless::program"));
        running.wait_for("`idle` has kept virtual time at 0 ns for 2 s");
    }
}

/// `wait_for_event` in an `idle` that processes data left by tasks of other partitions.
mod wait_for_event {
    use punctual::report::Outcome;
    use punctual::{Config, Duration};

    #[punctual::app(partitions = [home, away], main = false)]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {
            samples: Vec<u64>,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { samples: Vec::new() }, Local {})
        }

        #[idle(shared = [samples])]
        fn idle(mut cx: idle::Context) -> ! {
            loop {
                for sample in cx.shared.samples.lock(std::mem::take) {
                    let now = punctual::now().duration_since_epoch().as_millis();
                    assert_eq!(sample, now, "idle has not seen the sample when it was taken");
                    if sample == 20 {
                        punctual::shutdown();
                    }
                }
                punctual::wait_for_event();
            }
        }

        #[task(core = away, period = 10.millis(), execution = 3.millis(), shared = [samples])]
        fn sample(mut cx: sample::Context) {
            let now = punctual::now().duration_since_epoch().as_millis();
            cx.shared.samples.lock(|samples| samples.push(now));
        }

        /// Never released: its partition only idles.
        #[task(core = home)]
        fn rests(_: rests::Context) {}
    }

    /// Its own partition has no event to wait for.
    #[test]
    fn virtual_time_wakes_idle_for_events_of_other_partitions() {
        let config = Config::new().virtual_time().until(Duration::from_secs(1));
        assert_eq!(app::run(config).expect("nothing is missing").outcome, Outcome::Shutdown);
    }
}

/// An `idle` whose thread changes its own policy.
mod changed {
    use punctual::Config;
    use punctual_process::scheduling::set_policy;

    #[punctual::app(main = false)]
    mod app {
        use super::set_policy;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            policy: Option<i32>,
        }

        #[init]
        fn init(_: init::Context, policy: Option<i32>) -> (Shared, Local) {
            (Shared {}, Local { policy })
        }

        #[idle(local = [policy])]
        fn idle(cx: idle::Context) {
            if let Some(policy) = *cx.local.policy {
                set_policy(policy, 0).expect("an ordinary thread may choose another ordinary policy");
            }
            punctual::shutdown();
        }
    }

    #[test]
    fn report_notes_changed_settings_of_idle() {
        // On a separate thread, which keeps the policy.
        let notes = |policy| {
            let run = move || app::run(Config::new(), policy).expect("the app starts").settings.notes;
            let notes = std::thread::spawn(run).join().expect("the app does not panic");
            notes.into_iter().filter(|note| note.starts_with("thread idle was changed ")).collect::<Vec<_>>()
        };
        assert!(notes(None).is_empty());
        let changed = notes(Some(libc::SCHED_BATCH));
        assert!(changed.len() == 1 && changed[0].contains(" to SCHED_BATCH 0 on CPUs "), "{changed:?}");
    }
}
