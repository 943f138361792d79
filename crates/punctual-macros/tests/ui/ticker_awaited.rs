#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task]
    async fn control(_: control::Context) {
        let mut ticker = punctual::every(10.millis());
        loop {
            ticker.await;
        }
    }
}
