//! Missing, duplicate and malformed `#[init]`, `#[idle]` and `#[shutdown]`.

mod async_idle {
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

        #[idle]
        async fn idle(_: idle::Context) {}
    }
}

mod idle_returns_value {
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

        #[idle]
        fn idle(_: idle::Context) -> u32 {
            0
        }
    }
}

mod idle_with_arguments {
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

        #[idle]
        fn idle(_: idle::Context, count: u32) {}
    }
}

mod init_returns_other_types {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Local, Shared) {
            (Local {}, Shared {})
        }
    }
}

mod init_uses_local_field {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            sensor: u32,
        }

        #[init(local = [sensor])]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local { sensor: 0 })
        }
    }
}

mod init_without_resources {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) {}
    }
}

mod missing_init {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}
    }
}

mod shutdown_returns_value {
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

        #[shutdown]
        fn shutdown(_: shutdown::Context) -> u32 {
            0
        }
    }
}

mod two_idles {
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

        #[idle]
        fn idle(_: idle::Context) {}

        #[idle]
        fn idle(_: idle::Context) {}
    }
}

mod two_inits {
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

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }
    }
}

mod two_shutdowns {
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

        #[shutdown]
        fn shutdown(_: shutdown::Context) {}

        #[shutdown]
        fn shutdown(_: shutdown::Context) {}
    }
}

mod undeclared_shared_resource_of_idle {
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

        #[idle(shared = [count])]
        fn idle(_: idle::Context) {}
    }
}

fn main() {}
