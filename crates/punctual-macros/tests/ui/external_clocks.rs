//! External clocks that are not statics of the right type.
//!
//! Each task of `app` breaks the rule after which it is named.

static OTHER: u32 = 0;

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

    #[task(period = 1.millis(), clock = CLOCK)]
    fn unknown_clock(_: unknown_clock::Context) {}

    #[task(period = 1.millis(), clock = super::OTHER)]
    fn clock_of_wrong_type(_: clock_of_wrong_type::Context) {}
}
