//! Missing, duplicate and malformed `#[init]`, `#[idle]` and `#[shutdown]`.

/// An app with these handlers, in a module of this name.
macro_rules! app {
    ($name:ident, $($items:tt)*) => {
        mod $name {
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

                $($items)*
            }
        }
    };
}

app! { async_idle,
    #[idle]
    async fn idle(_: idle::Context) {}
}

app! { idle_returns_value,
    #[idle]
    fn idle(_: idle::Context) -> u32 {
        0
    }
}

app! { idle_with_arguments,
    #[idle]
    fn idle(_: idle::Context, count: u32) {}
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

app! { shutdown_returns_value,
    #[shutdown]
    fn shutdown(_: shutdown::Context) -> u32 {
        0
    }
}

app! { two_idles,
    #[idle]
    fn idle(_: idle::Context) {}

    #[idle]
    fn idle(_: idle::Context) {}
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

app! { two_shutdowns,
    #[shutdown]
    fn shutdown(_: shutdown::Context) {}

    #[shutdown]
    fn shutdown(_: shutdown::Context) {}
}

app! { undeclared_shared_resource_of_idle,
    #[idle(shared = [count])]
    fn idle(_: idle::Context) {}
}

fn main() {}
