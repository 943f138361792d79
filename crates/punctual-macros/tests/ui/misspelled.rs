//! Misspelled names of the framework, names of RTIC, missing keys of parameters, and names of
//! resources in the wrong list.

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

mod keys_of_rtic {
    #[punctual::app(device = lm3s6965, dispatchers = [UART0, UART1])]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[monotonic(binds = SysTick, default = true)]
        type Mono = Systick<1000>;

        #[task(binds = UART0, resources = [a])]
        fn uart(_: uart::Context) {}
    }
}

mod parameters_declared_in_part {
    use punctual_bridge::Parameters;

    #[derive(Clone, Copy, Parameters)]
    struct Gains {
        kp: f64,
        #[parameter(default = 1.0)]
        ki: f64,
        #[parameter(default = 1.0, range = 0.0..10.0)]
        kd: f64,
    }
}

fn main() {}
