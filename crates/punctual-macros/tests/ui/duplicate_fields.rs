//! Resources with the same name.

mod local_declared_twice {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            sensor: u32,
            sensor: u8,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }
    }
}

mod shared_resource_declared_twice {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {
            count: u32,
            count: u8,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }
    }
}

fn main() {}
