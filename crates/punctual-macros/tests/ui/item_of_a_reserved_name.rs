#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    static __punctual_runtime: u32 = 0;

    const MODEL: u32 = 0;

    #[task]
    fn __punctual_partition_0(_: __punctual_partition_0::Context) {}
}
