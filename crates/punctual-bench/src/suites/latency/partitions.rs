//! Tasks of two partitions, each on a CPU, that spawn each other in turn: with both sleeping
//! between jobs, with both spinning before they sleep, and with one polling.

use punctual::{Config, Duration};

use super::Window;
use crate::clock;
use crate::rt::Lack;
use crate::subject::outcome;

macro_rules! app {
    ($(#[$doc:meta])* $function:ident, $app:ident, $away:ident = $name:literal $(($poll:ident))? $(, $setting:ident = $value:expr)?) => {
        $(#[$doc])*
        pub(super) fn $function(
            window: &Window,
            cpus: [usize; 2],
        ) -> Result<Lack, String> {
            if window.is_over() {
                return Ok(Lack::new());
            }
            let config = Config::new().partition_cpu("home", cpus[0]).partition_cpu($name, cpus[1]);
            $(let config = config.$setting($value);)?
            outcome($app::run(config, window.clone()))
        }

        #[punctual::app(partitions = [home, $away $(($poll))?], main = false, monitor = false)]
        mod $app {
            use super::*;

            #[shared]
            struct Shared {}

            #[local]
            struct Local {
                window: Window,
            }

            #[init]
            fn init(_: init::Context, window: Window) -> (Shared, Local) {
                ask::spawn(0).expect("it is spawned once");
                (Shared {}, Local { window })
            }

            /// Ends a round, if one has started, and starts the next.
            #[task(core = home, local = [window])]
            fn ask(cx: ask::Context, begun: u64) {
                let more = begun == 0 || cx.local.window.recorder.push(clock::now() - begun);
                if !more || cx.local.window.is_over() {
                    return punctual::shutdown();
                }
                answer::spawn(clock::now()).expect("it has answered");
            }

            #[task(core = $away)]
            fn answer(_: answer::Context, begun: u64) {
                ask::spawn(begun).expect("it has asked");
            }
        }
    };
}

app! {
    /// Rounds between two sleeping partitions; a sample is a round trip.
    sleeping, sleep, away = "away"
}
app! {
    /// Rounds between two partitions that spin before they sleep.
    spinning, spin, away = "away", spin = Duration::from_micros(50)
}
app! {
    /// Rounds between a sleeping partition and a polling one.
    polling, poll, fast = "fast" (poll)
}
