#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[repr(align(128))]
    struct Aligned(u8);

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task]
    async fn waits(_: waits::Context) {
        let aligned = Aligned(1);
        punctual::delay(1.millis()).await;
        drop(aligned);
    }
}
