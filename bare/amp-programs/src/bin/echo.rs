//! Answers Linux through shared memory. The lab program `amp` measures round trips with it.
#![no_std]
#![no_main]

#[path = "../../../../lab/programs/src/amp/exchange.rs"]
mod exchange;

#[punctual::app(report = "never")]
mod app {
    use punctual_bare::amp;

    use crate::exchange::Exchange;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[idle]
    fn idle(_: idle::Context) -> ! {
        // SAFETY: the memory is mapped for as long as the program runs and is initially zero, and
        // both sides access it only through this type.
        let exchange = unsafe { &*amp::memory().cast::<Exchange>() };
        let mut server = exchange.server();
        loop {
            server.answer();
        }
    }
}
