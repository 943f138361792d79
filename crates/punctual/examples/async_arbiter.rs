//! A bus that a task uses across waits: its owner keeps it, and the longest-waiting task gets it
//! next.
//!
//! A transfer takes 2 ms, during which the task waits and its level is free. `high` arrives 1 ms
//! later than the others and is served in its turn: an arbiter ignores priorities. Exclusion
//! without a wait is the purpose of a shared resource.

#[punctual::app]
mod app {
    use punctual::prelude::*;
    use punctual::sync::asynch::arbiter::Arbiter;

    static BUS: Arbiter<Vec<&str>> = Arbiter::new(Vec::new());

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        one::spawn().unwrap();
        two::spawn().unwrap();
        high::spawn().unwrap();
        (Shared {}, Local {})
    }

    async fn transfer(name: &'static str) {
        println!("{name} asks");
        let mut bus = BUS.access().await;
        println!("{name} has the bus");
        punctual::delay(2.millis()).await;
        bus.push(name);
        if bus.len() == 3 {
            println!("everyone has had it");
            punctual::shutdown();
        }
    }

    #[task(priority = 1)]
    async fn one(_: one::Context) {
        transfer("one").await;
    }

    #[task(priority = 1)]
    async fn two(_: two::Context) {
        transfer("two").await;
    }

    #[task(priority = 2)]
    async fn high(_: high::Context) {
        punctual::delay(1.millis()).await;
        transfer("high").await;
    }
}
