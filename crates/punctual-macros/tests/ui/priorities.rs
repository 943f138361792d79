//! Invalid priorities.
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

    #[task(priority = "2")]
    fn priority_not_an_integer(_: priority_not_an_integer::Context) {}

    #[task(priority = -1)]
    fn priority_not_an_integer_tock(_: priority_not_an_integer_tock::Context) {}

    #[task(priority = LEVEL)]
    fn priority_not_an_integer_tack(_: priority_not_an_integer_tack::Context) {}

    #[task(priority = 0)]
    fn priority_out_of_range(_: priority_out_of_range::Context) {}

    #[task(priority = 29)]
    fn priority_out_of_range_tock(_: priority_out_of_range_tock::Context) {}
}

mod priority_beyond_the_kernel {
    #[punctual::app(priority_base = 80)]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[task(priority = 19)]
        fn highest(_: highest::Context) {}

        #[task(priority = 20)]
        fn beyond(_: beyond::Context) {}
    }
}

mod priority_not_known_to_the_macro {
    mod other {
        pub const LEVEL: u8 = 3;
    }

    #[punctual::app]
    mod app {
        const LEVEL: u8 = 2;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[task(priority = LEVEL)]
        fn known(_: known::Context) {}

        #[task(priority = super::other::LEVEL)]
        fn unknown(_: unknown::Context) {}

        #[task(priority = 0)]
        fn at_the_level_of_idle(_: at_the_level_of_idle::Context) {}

        #[task(priority = 27 + LEVEL)]
        fn too_high(_: too_high::Context) {}
    }
}
