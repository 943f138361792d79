//! `wait_for_event` in an `idle` that processes data left by tasks of other partitions.

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
