//! `timeout_after` drops a future when its time limit is reached.
//!
//! `patient` waits up to 500 ms for a future of 2 ms, `hasty` up to 2 ms for a future of 500 ms,
//! which is then dropped.

#[punctual::app]
mod app {
    use punctual::prelude::*;
    use punctual::{Duration, TimeoutError};

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    /// Prints how it ends.
    struct Work(&'static str);

    impl Drop for Work {
        fn drop(&mut self) {
            println!("{}: dropped", self.0);
        }
    }

    async fn work(name: &'static str, takes: Duration) -> u32 {
        let _work = Work(name);
        punctual::delay(takes).await;
        println!("{name}: done");
        42
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        patient::spawn().unwrap();
        (Shared {}, Local {})
    }

    #[task(priority = 2)]
    async fn patient(_: patient::Context) {
        assert_eq!(punctual::timeout_after(500.millis(), work("patient", 2.millis())).await, Ok(42));
        hasty::spawn().unwrap();
    }

    #[task(priority = 1)]
    async fn hasty(_: hasty::Context) -> ! {
        assert_eq!(punctual::timeout_after(2.millis(), work("hasty", 500.millis())).await, Err(TimeoutError));
        punctual::shutdown();
        std::future::pending().await
    }
}
