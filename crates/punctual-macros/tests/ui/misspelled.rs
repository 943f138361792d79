//! Misspelled names of the framework, and names of resources in the wrong list.

mod attributes {
    #[punctual::app]
    mod app {
        #[share]
        struct Shared {}

        #[locals]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }
    }
}

mod values {
    #[punctual::app(partitions = [control(cpus = 1), io(pol)])]
    mod app {
        use std::os::unix::net::UnixStream;

        use punctual::prelude::*;

        #[shared]
        struct Shared {
            #[lockfree]
            state: u32,
        }

        #[local]
        struct Local {
            line: UnixStream,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            loop {}
        }

        #[task(core = control, period = 1.millis(), on_overrun = skp, shared = [line])]
        fn sample(_: sample::Context) {}

        #[task(core = control, min_interval = 0.millis(), on_early = dely, local = [state])]
        fn report(_: report::Context) {}

        #[task(core = io, binds = lin, local = [line], on_idle_source = onec)]
        fn read(_: read::Context) {}
    }
}

fn main() {}
