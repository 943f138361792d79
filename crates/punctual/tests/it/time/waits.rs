//! Async tasks of one partition that wait for actions of another: the exact times at which they
//! continue, or time out.

use punctual::Config;
use punctual::report::Outcome;

use crate::log::Log;

#[punctual::app(main = false, partitions = [a, b])]
mod app {
    use crate::log::Log;
    use punctual::prelude::*;
    use punctual::sync::asynch::channel::{Channel, Receiver, Sender};

    #[shared]
    struct Shared {
        log: Log,
        /// Used in both partitions.
        sum: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context, log: Log) -> (Shared, Local) {
        // One for each run.
        let channel: &'static mut Channel<u32, 1> = Box::leak(Box::new(Channel::new()));
        let (sender, receiver) = channel.split();
        receives::spawn(receiver).unwrap();
        sends::spawn(sender).unwrap();
        busy::spawn().unwrap();
        (Shared { log, sum: 0 }, Local {})
    }

    /// Sends at 3 ms, and again whenever there is room.
    #[task(core = a, priority = 1, shared = [&log, sum])]
    async fn sends(mut cx: sends::Context, mut sender: Sender<'static, u32, 1>) {
        punctual::delay(1.millis()).await;
        cx.shared.log.note("goes on");
        punctual::spend(2.millis());
        for number in [1, 2, 3] {
            sender.send(number).await.unwrap();
            cx.shared.log.note("sent");
        }
        cx.shared.sum.lock(|sum| *sum += 10);
        punctual::delay(9.millis()).await;
        cx.shared.log.note("leaves");
    }

    /// Below `receives`.
    #[task(core = b, priority = 1, shared = [&log])]
    fn busy(cx: busy::Context) {
        punctual::spend(4.millis());
        cx.shared.log.note("busy ends");
    }

    #[task(core = b, priority = 2, waits = 2, shared = [&log, sum])]
    async fn receives(mut cx: receives::Context, mut receiver: Receiver<'static, u32, 1>) {
        loop {
            match punctual::timeout_after(5.millis(), receiver.recv()).await {
                Ok(Ok(number)) => {
                    cx.shared.log.note("received");
                    punctual::spend(1.millis());
                    cx.shared.sum.lock(|sum| *sum += number);
                }
                Ok(Err(_)) => break cx.shared.log.note("nobody is left"),
                Err(_) => cx.shared.log.note("in vain"),
            }
        }
        cx.shared.sum.lock(|sum| assert_eq!(*sum, 16));
    }
}

#[test]
fn wakes_and_timeouts_cross_partitions_at_their_time() {
    let expected = [
        (1, "goes on"),
        (3, "sent"),
        (3, "received"),
        (3, "sent"),
        (4, "received"),
        (4, "sent"),
        (5, "received"),
        // 3 ms before, 3 ms of preemption.
        (7, "busy ends"),
        (11, "in vain"),
        (13, "leaves"),
        (13, "nobody is left"),
    ];
    for _ in 0..20 {
        let log = Log::default();
        let report = app::run(Config::new().virtual_time(), log.clone()).unwrap();
        assert_eq!(report.outcome, Outcome::Quiescent);
        assert_eq!(log.take(), expected);
    }
}
