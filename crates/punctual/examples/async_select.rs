//! Waiting for the first of several events, and for all of them, with the combinators of
//! `embassy-futures`.
//!
//! `serves` selects the first of a request and a tick: dropping the other wait loses neither.
//! `measures` joins two conversions, which run concurrently, so that together they take 7 ms and
//! not 12.

// ANCHOR: app
#[punctual::app]
mod app {
    use embassy_futures::join::join;
    use embassy_futures::select::{Either, select};
    use punctual::prelude::*;
    use punctual::sync::asynch::channel::{Receiver, Sender};
    use punctual::sync::make_channel;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let (sender, receiver) = make_channel!(u32, 4);
        serves::spawn(receiver).unwrap();
        measures::spawn(sender).unwrap();
        (Shared {}, Local {})
    }

    /// Two waits at once: for a request, which needs no timer, and for a tick.
    #[task(priority = 2)]
    async fn serves(_: serves::Context, mut requests: Receiver<'static, u32, 4>) {
        let mut ticker = punctual::every(20.millis());
        loop {
            match select(requests.recv(), ticker.next()).await {
                Either::First(Ok(request)) => println!("request {request}"),
                Either::First(Err(_)) => break println!("no more requests"),
                Either::Second(_) => println!("tick"),
            }
        }
        punctual::shutdown();
    }

    /// At most three timers: one for the wait in between, and two at once for the conversions.
    #[task(priority = 1, waits = 3)]
    async fn measures(_: measures::Context, mut requests: Sender<'static, u32, 4>) {
        punctual::delay(30.millis()).await;
        requests.send(1).await.unwrap();
        let began = punctual::now();
        let (left, right) = join(converts(5), converts(7)).await;
        let took = (punctual::now() - began).as_millis();
        println!("{left} and {right} within {} ms", if took < 12 { "12" } else { "more than 12" });
        punctual::delay(15.millis()).await;
        requests.send(2).await.unwrap();
    }

    /// A converter that takes this many milliseconds.
    async fn converts(ms: u64) -> u64 {
        punctual::delay(ms.millis()).await;
        ms * 100
    }
}
