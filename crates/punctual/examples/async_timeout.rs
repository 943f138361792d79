//! `timeout_after` gives up on a future when the time is up.
//!
//! `patient` waits 3 ms for something that takes 2 ms, `hasty` waits 1 ms for the same. What is given up is dropped.

#[punctual::app]
mod app {
    use punctual::TimeoutError;
    use punctual::prelude::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    /// Says how it ends.
    struct Work(&'static str);

    impl Drop for Work {
        fn drop(&mut self) {
            println!("{}: dropped", self.0);
        }
    }

    async fn work(name: &'static str) -> u32 {
        let _work = Work(name);
        punctual::delay(2.millis()).await;
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
        assert_eq!(punctual::timeout_after(3.millis(), work("patient")).await, Ok(42));
        hasty::spawn().unwrap();
    }

    #[task(priority = 1)]
    async fn hasty(_: hasty::Context) -> ! {
        assert_eq!(punctual::timeout_after(1.millis(), work("hasty")).await, Err(TimeoutError));
        punctual::shutdown();
        std::future::pending().await
    }
}
