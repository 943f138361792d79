//! An app whose job never ends. It ignores the request to end and is terminated after its grace
//! period.
#![no_std]
#![no_main]

#[punctual::app(report = "never")]
mod app {
    use punctual_bare::println;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        println!("stuck: begins");
        (Shared {}, Local {})
    }

    #[task(priority = 1, period = 1.millis())]
    fn tick(_: tick::Context) {
        loop {
            core::hint::spin_loop();
        }
    }
}
