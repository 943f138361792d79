//! Answers Linux through the memory that both share: what the program `amp` of the lab measures a round trip with.
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
        // SAFETY: the memory is mapped as long as the program runs, is zero at first, and both sides access it by this type
        // alone.
        let exchange = unsafe { &*amp::memory().cast::<Exchange>() };
        let mut server = exchange.server();
        loop {
            server.answer();
        }
    }
}
