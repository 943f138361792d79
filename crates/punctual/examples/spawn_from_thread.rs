//! Any thread may spawn into an app. The job is queued, and the level's worker is woken.
//!
//! `punctual::background::spawn` starts threads that are not real-time, off the app's CPU. `ask`
//! waits for its helper here, which makes the order deterministic: the answers are of the level of
//! `ask`, so they wait until it has ended. A real-time task would not wait for a thread, but
//! process the answers when they arrive.

#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        ask::spawn().unwrap();
        (Shared {}, Local {})
    }

    #[task]
    fn ask(_: ask::Context) {
        println!("ask starts");
        let helper = punctual::background::spawn("helper", || {
            for n in 1..=3 {
                answer::spawn(n, format!("the answer {n}")).expect("there is room for three");
            }
        });
        helper.expect("threads can be started").join().expect("it does not panic");
        println!("ask ends");
    }

    #[task(capacity = 3)]
    fn answer(_: answer::Context, n: u32, text: String) {
        println!("{text}");
        if n == 3 {
            punctual::shutdown();
        }
    }
}
