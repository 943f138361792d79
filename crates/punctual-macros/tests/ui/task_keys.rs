//! Invalid keys of `#[task]`.
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

    #[task(priority = 2, priority = 3)]
    fn key_given_twice(_: key_given_twice::Context) {}

    #[task(priority)]
    fn key_without_value(_: key_without_value::Context) {}

    #[task(local = [#[inline] count: u32 = 0])]
    fn list_entry_with_attribute(_: list_entry_with_attribute::Context) {}

    #[task(prio = 2)]
    fn unknown_key(_: unknown_key::Context) {}

    #[task(waits = 2)]
    fn waits_of_plain_task(_: waits_of_plain_task::Context) {}

    #[task(waits = 65)]
    async fn waits_out_of_range(_: waits_out_of_range::Context) {}

    #[task(capacity = 0)]
    fn capacity_out_of_range(_: capacity_out_of_range::Context) {}

    #[task(capacity = 1025)]
    fn capacity_out_of_range_tock(_: capacity_out_of_range_tock::Context) {}

    #[task(period = 10.millis(), capacity = 2)]
    fn capacity_without_queue(_: capacity_without_queue::Context) {}

    #[task(clock = CLOCK)]
    fn clock_without_period(_: clock_without_period::Context) {}

    #[task(period = 1.millis(), clock = &CLOCK)]
    fn reference_to_clock(_: reference_to_clock::Context) {}

    #[task(period = 1.millis(), clock = "/dev/ptp0")]
    fn path_of_clock(_: path_of_clock::Context) {}

    #[task(capacity = 2)]
    async fn async_task_with_capacity(_: async_task_with_capacity::Context) {}
}

mod key_misspelled {
    #[punctual::app(partition = [a, b])]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init(shared = [count])]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[task(prio = 2, periode = 10.millis())]
        fn control(_: control::Context) {}

        #[task(priority 2, capacity: 3, deadline = 1.5.ms())]
        fn other(_: other::Context) {}
    }
}

mod list_not_in_brackets {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {
            count: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { count: 0 }, Local {})
        }

        #[task(shared = count)]
        fn tick(_: tick::Context) {}
    }
}

mod name_in_quotes {
    #[punctual::app(partitions = [motor, "log"])]
    mod app {
        #[shared]
        struct Shared {
            count: u32,
        }

        #[local]
        struct Local {
            line: u32,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { count: 0 }, Local { line: 0 })
        }

        #[task(core = "motor", shared = ["count"], local = ["line"], binds = "line")]
        fn control(_: control::Context) {}

        #[task(core = motor + 1, period = punctual::Duration::from_millis(1), on_overrun = "skip")]
        fn log(_: log::Context) {}
    }
}

mod capacity_of_bound_task {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            socket: std::net::UdpSocket,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local { socket: std::net::UdpSocket::bind("127.0.0.1:0").unwrap() })
        }

        #[task(binds = socket, local = [socket], capacity = 2)]
        fn tick(_: tick::Context) {}
    }
}
