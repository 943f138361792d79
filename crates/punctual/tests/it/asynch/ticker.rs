//! Tickers keep to the grid of the periodic tasks, whatever happens between two ticks.

use crate::asynch::virtual_time;

#[punctual::app(main = false)]
mod app {
    use std::sync::mpsc::Sender;

    use punctual::prelude::*;

    #[shared]
    struct Shared {
        /// Nominal time of each tick in ms, its actual time, and the number missed by then.
        ticks: Sender<(u64, u64, u64)>,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(
        _: init::Context,
        ticks: Sender<(u64, u64, u64)>,
        delay: u64,
        work: &'static [u64],
    ) -> (Shared, Local) {
        works::spawn(delay, work).unwrap();
        (Shared { ticks }, Local {})
    }

    /// Waits for `delay` ms, and then for a tick before each unit of work.
    #[task(priority = 1, shared = [ticks])]
    async fn works(mut cx: works::Context, delay: u64, work: &'static [u64]) {
        punctual::delay(delay.millis()).await;
        let mut ticker = punctual::every(10.millis());
        for ms in work {
            let tick = ticker.next().await;
            let now = punctual::now();
            let [tick, now] = [tick, now].map(|time| time.as_ticks() / 1_000_000);
            cx.shared.ticks.lock(|ticks| ticks.send((tick, now, ticker.missed()))).unwrap();
            punctual::spend(ms.millis());
        }
    }

    /// Preempts `works` around 30 ms.
    #[task(priority = 2, period = 1.secs(), offset = 29.millis())]
    fn preempts(_: preempts::Context) {
        punctual::spend(2.millis());
    }
}

fn ticks(delay: u64, work: &'static [u64]) -> Vec<(u64, u64, u64)> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let config = virtual_time().until(punctual::Duration::from_millis(100));
    app::run(config, sender, delay, work).expect("virtual time has no requirements");
    receiver.iter().collect()
}

#[test]
fn work_between_ticks_does_not_shift_them() {
    let expected = [(10, 10, 0), (20, 20, 0), (30, 31, 0), (40, 40, 0)];
    assert_eq!(ticks(0, &[3, 4, 1, 0]), expected, "the third comes late, for `preempts` runs");
}

#[test]
fn later_ticker_follows_app_grid() {
    assert_eq!(ticks(13, &[0, 0]), [(20, 20, 0), (30, 31, 0)]);
    assert_eq!(ticks(40, &[0]), [(50, 50, 0)], "the first tick comes after the wait begins");
}

#[test]
fn past_tick_fires_at_once_and_earlier_ones_are_counted() {
    // 31 ms with `preempts`: the ticks at 20, 30 and 40 ms pass.
    assert_eq!(ticks(0, &[31, 0, 0]), [(10, 10, 0), (40, 43, 2), (50, 50, 2)]);
}
