//! A program of embassy after porting: a sensor that fills a channel, and a consumer with a time
//! limit.
//!
//! The tasks have levels, so `alarm` would preempt `sensor` between two of its polls. Each runs
//! only while it is polled.

// ANCHOR: app
#[punctual::app]
mod app {
    use punctual::prelude::*;
    use punctual::sync::asynch::channel::{Receiver, Sender};
    use punctual::sync::make_channel;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let (sender, receiver) = make_channel!(u32, 4); // static CHANNEL: Channel<.., u32, 4>
        sensor::spawn(sender).unwrap(); // spawner.spawn(sensor(CHANNEL.sender())?)
        alarm::spawn(receiver).unwrap();
        (Shared {}, Local {})
    }

    #[task(priority = 1)] // #[embassy_executor::task]
    async fn sensor(_: sensor::Context, mut values: Sender<'static, u32, 4>) {
        let mut ticker = punctual::every(10.millis()); // Ticker::every(Duration::from_millis(10))
        for value in 1..=3 {
            ticker.next().await;
            values.send(value).await.ok();
        }
    }

    #[task(priority = 2)] // InterruptExecutor::start(priority)
    async fn alarm(_: alarm::Context, mut values: Receiver<'static, u32, 4>) {
        // with_timeout(Duration::from_secs(1), receiver.receive())
        while let Ok(Ok(value)) = punctual::timeout_after(1.secs(), values.recv()).await {
            println!("value {value}");
        }
        println!("no more values");
        punctual::shutdown();
    }
}
// ANCHOR_END: app
