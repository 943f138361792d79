//! No time passes in `init`: no other partition gets a turn before the resources exist.

use std::sync::atomic::{AtomicBool, Ordering};

use punctual::Config;
use punctual::report::Outcome;

/// An action of `init` that lets time pass elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Spends,
    WaitsForEvent,
}

/// True if a job ran before `init` had ended.
static EARLY: AtomicBool = AtomicBool::new(false);
static INITIALISED: AtomicBool = AtomicBool::new(false);

#[punctual::app(main = false, partitions = [a, b])]
mod app {
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::Ordering;

    use punctual::prelude::*;

    use super::{EARLY, INITIALISED, Manner};

    #[shared]
    struct Shared {
        text: String,
    }

    #[local]
    struct Local {
        line: UnixStream,
        other_end: UnixStream,
    }

    #[init]
    fn init(_: init::Context, manner: Manner) -> (Shared, Local) {
        writes::spawn().unwrap();
        match manner {
            Manner::Spends => punctual::spend(5.millis()),
            Manner::WaitsForEvent => punctual::wait_for_event(),
        }
        INITIALISED.store(true, Ordering::Relaxed);
        let (line, other_end) = UnixStream::pair().expect("sockets can be made");
        (Shared { text: String::from("made") }, Local { line, other_end })
    }

    #[task(core = b, period = 1.millis(), shared = [text])]
    fn reads(mut cx: reads::Context) {
        EARLY.fetch_or(!INITIALISED.load(Ordering::Relaxed), Ordering::Relaxed);
        cx.shared.text.lock(|text| assert!(text.starts_with("made")));
    }

    #[task(core = b, priority = 2, shared = [text], local = [other_end])]
    fn writes(mut cx: writes::Context) {
        EARLY.fetch_or(!INITIALISED.load(Ordering::Relaxed), Ordering::Relaxed);
        if INITIALISED.load(Ordering::Relaxed) {
            cx.shared.text.lock(|text| text.push('!'));
        }
    }

    #[task(core = a, binds = line, local = [line], shared = [text])]
    fn bound(_: bound::Context) {}
}

/// Runs the app, of which there is one.
fn run(manner: Manner) -> Outcome {
    let _alone = crate::alone();
    INITIALISED.store(false, Ordering::Relaxed);
    EARLY.store(false, Ordering::Relaxed);
    let config = Config::new().virtual_time().until(punctual::Duration::from_millis(3));
    let report = app::run(config, manner).unwrap();
    assert!(!EARLY.load(Ordering::Relaxed), "{manner:?}: a job ran before the resources were there");
    report.outcome
}

#[test]
fn spend_in_init_runs_no_job() {
    for _ in 0..2 {
        assert_eq!(run(Manner::Spends), Outcome::TimeUp);
    }
}

#[test]
fn rejects_waiting_for_events_in_init() {
    match run(Manner::WaitsForEvent) {
        Outcome::Panicked { task, message } => {
            assert_eq!(task, "init");
            assert!(message.contains("for idle only"), "{message}");
        }
        outcome => panic!("{outcome:?}"),
    }
}
