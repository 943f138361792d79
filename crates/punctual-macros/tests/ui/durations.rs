//! Invalid durations.
//!
//! Each task of `app` breaks the rule after which it is named.

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

    #[task(period = 10.millis(), deadline = 11.millis())]
    fn deadline_above_period(_: deadline_above_period::Context) {}

    #[task(deadline = 10.Hz())]
    fn deadline_as_rate(_: deadline_as_rate::Context) {}

    #[task(period = 1.5.millis())]
    fn duration_fractional(_: duration_fractional::Context) {}

    #[task(period = -10.millis())]
    fn duration_negative(_: duration_negative::Context) {}

    #[task(period = 6_000_000.hours())]
    fn duration_overflow(_: duration_overflow::Context) {}

    #[task(period = 10.ms())]
    fn duration_unknown_unit(_: duration_unknown_unit::Context) {}

    #[task(period = 10)]
    fn duration_without_unit(_: duration_without_unit::Context) {}
}

mod budget_beyond_period {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (self::Shared, self::Local) {
            (Shared {}, Local {})
        }

        #[task(period = 1.millis(), budget = 2.millis())]
        fn control(_: self::control::Context) {}

        #[task(period = 10.millis(), deadline = 1.millis(), budget = 2.millis())]
        fn other(_: other::Context) {}
    }
}
