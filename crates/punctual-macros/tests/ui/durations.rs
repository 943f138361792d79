//! Invalid durations.

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

mod deadline_above_period {
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

        #[task(period = 10.millis(), deadline = 11.millis())]
        fn tick(_: tick::Context) {}
    }
}

mod deadline_as_rate {
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

        #[task(deadline = 10.Hz())]
        fn tick(_: tick::Context) {}
    }
}

mod duration_fractional {
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

        #[task(period = 1.5.millis())]
        fn tick(_: tick::Context) {}
    }
}

mod duration_negative {
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

        #[task(period = -10.millis())]
        fn tick(_: tick::Context) {}
    }
}

mod duration_overflow {
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

        #[task(period = 6_000_000.hours())]
        fn tick(_: tick::Context) {}
    }
}

mod duration_unknown_unit {
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

        #[task(period = 10.ms())]
        fn tick(_: tick::Context) {}
    }
}

mod duration_without_unit {
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

        #[task(period = 10)]
        fn tick(_: tick::Context) {}
    }
}

fn main() {}
