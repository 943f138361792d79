//! Constants with invalid values.

mod budget_constant_beyond_period {
    #[punctual::app]
    mod app {
        use punctual::Duration;

        const BUDGET: Duration = Duration::from_micros(1_001);
        const PERIOD: Duration = Duration::from_micros(1_000);

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[task(period = PERIOD, budget = BUDGET)]
        fn control(_: control::Context) {}

        #[task(period = 10.millis(), deadline = PERIOD, budget = 2.millis())]
        fn other(_: other::Context) {}

        #[task(deadline = 1.millis(), budget = BUDGET)]
        fn message(_: message::Context) {}
    }
}

mod deadline_constant_beyond_period {
    #[punctual::app]
    mod app {
        use punctual::Duration;

        const PERIOD: Duration = Duration::from_micros(999);

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[task(period = PERIOD, deadline = 1.millis())]
        fn control(_: control::Context) {}

        // Its releases wait.
        #[task(period = PERIOD, deadline = 1.millis(), on_overrun = queue, capacity = 2)]
        fn queued(_: queued::Context) {}
    }
}

mod duration_constant_of_zero {
    #[punctual::app]
    mod app {
        use punctual::Duration;

        const ZERO: Duration = Duration::from_ticks(0);

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[task(period = ZERO)]
        fn control(_: control::Context) {}

        #[task(deadline = ZERO, budget = ZERO, min_interval = ZERO)]
        fn message(_: message::Context) {}

        // An offset may be zero.
        #[task(period = 1.millis(), offset = ZERO)]
        fn other(_: other::Context) {}
    }
}

mod future_of_a_strict_alignment {
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
}

mod priority_wraps_in_the_compiler {
    #[punctual::app]
    mod app {
        const BASE: u32 = 258;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[task(priority = BASE as u8 / 64)]
        fn wraps(_: wraps::Context) {}
    }
}

mod parameter_default_nan {
    use punctual_bridge::Parameters;

    #[derive(Clone, Copy, Parameters)]
    struct Gains {
        #[parameter(default = f64::NAN, range = 0.0..=10.0)]
        kp: f64,
    }
}

mod parameter_default_out_of_range {
    use punctual_bridge::Parameters;

    #[derive(Clone, Copy, Parameters)]
    struct Gains {
        #[parameter(default = 12.0, range = 0.0..=10.0)]
        kp: f64,
    }
}

mod parameter_range_infinite {
    use punctual_bridge::Parameters;

    #[derive(Clone, Copy, Parameters)]
    struct Gains {
        #[parameter(default = 1.0, range = 0.0..=f64::INFINITY)]
        kp: f64,
    }
}

fn main() {}
