//! Messages between tasks: two senders, one receiver, and a capacity of two.
//!
//! The senders are above the receiver, so the first one fills the channel before the receiver runs,
//! and waits for room. Freed slots go to the longest-waiting sender. When all senders are dropped,
//! the receiver gets an error.

#[punctual::app]
mod app {
    use punctual::sync::asynch::channel::{Receiver, Sender};
    use punctual::sync::make_channel;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let (sender, receiver) = make_channel!(u32, 2);
        counts::spawn(receiver).unwrap();
        first::spawn(sender.clone()).unwrap();
        second::spawn(sender).unwrap();
        (Shared {}, Local {})
    }

    #[task(priority = 2)]
    async fn first(_: first::Context, mut sender: Sender<'static, u32, 2>) {
        for number in 1..=4 {
            sender.send(number).await.unwrap();
            println!("  first has sent {number}");
        }
    }

    #[task(priority = 2)]
    async fn second(_: second::Context, mut sender: Sender<'static, u32, 2>) {
        sender.send(100).await.unwrap();
        println!("  second has sent 100");
    }

    #[task(priority = 1)]
    async fn counts(_: counts::Context, mut receiver: Receiver<'static, u32, 2>) {
        while let Ok(number) = receiver.recv().await {
            println!("received {number}");
        }
        println!("no sender is left");
        punctual::shutdown();
    }
}
