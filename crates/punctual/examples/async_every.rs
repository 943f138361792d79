//! An async task works at a steady rate, on the grid of the periodic tasks.
//!
//! `polls` begins at 5 ms and ticks at 20, 40, 80 and 100 ms, on the grid of a task with a period
//! of 20 ms. Its second round ends at 90 ms: of the ticks at 60 and 80 ms the second is late, and
//! the first is missed. The next one is on time.

// ANCHOR: app
#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        polls::spawn().unwrap();
        (Shared {}, Local {})
    }

    #[task(priority = 1)]
    async fn polls(_: polls::Context) {
        punctual::delay(5.millis()).await;
        let mut ticker = punctual::every(20.millis());
        let mut last = None;
        for takes in [1, 50, 1, 1] {
            let tick = ticker.next().await;
            match last.replace(tick) {
                None => println!("the first tick"),
                Some(last) => println!("{} ms later", (tick - last).as_millis()),
            }
            // For example, the answer of a device.
            punctual::delay(takes.millis()).await;
        }
        println!("{} missed", ticker.missed());
        punctual::shutdown();
    }
}
