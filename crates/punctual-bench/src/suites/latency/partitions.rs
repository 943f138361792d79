//! Tasks of two partitions, each on a CPU, that spawn each other in turn: with both sleeping
//! between jobs, with both spinning before they sleep, and with one polling.

use std::sync::Arc;

use punctual::{Config, Duration};

use crate::recorder::Recorder;
use crate::rt::Lack;
use crate::subject::outcome;
use crate::{Stop, clock};

/// The output of the asking task.
#[derive(Debug)]
struct Out {
    recorder: Arc<Recorder>,
    until: usize,
    stop: Stop,
}

macro_rules! app {
    ($(#[$doc:meta])* $function:ident, $app:ident, $away:ident = $name:literal $(($poll:ident))? $(, $setting:ident = $value:expr)?) => {
        $(#[$doc])*
        pub(super) fn $function(
            recorder: &Arc<Recorder>,
            until: usize,
            cpus: [usize; 2],
            stop: &Stop,
        ) -> Result<Lack, String> {
            if recorder.len() >= until || stop.is_requested() {
                return Ok(Lack::new());
            }
            let out = Out { recorder: recorder.clone(), until, stop: stop.clone() };
            let config = Config::new().partition_cpu("home", cpus[0]).partition_cpu($name, cpus[1]);
            $(let config = config.$setting($value);)?
            outcome($app::run(config, out))
        }

        #[punctual::app(partitions = [home, $away $(($poll))?], main = false, monitor = false)]
        mod $app {
            use super::*;

            #[shared]
            struct Shared {}

            #[local]
            struct Local {
                out: Out,
            }

            #[init]
            fn init(_: init::Context, out: Out) -> (Shared, Local) {
                ask::spawn(0).expect("it is spawned once");
                (Shared {}, Local { out })
            }

            /// Ends a round, if one has started, and starts the next.
            #[task(core = home, local = [out])]
            fn ask(cx: ask::Context, begun: u64) {
                let out = cx.local.out;
                let more = begun == 0 || out.recorder.push(clock::now() - begun);
                if !more || out.recorder.len() >= out.until || out.stop.is_requested() {
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
