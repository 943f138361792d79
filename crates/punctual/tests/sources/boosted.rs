//! An event whose job waits for what `idle` holds: `idle` gets the priority of the job until it lets go.

use std::fs;
use std::time::{Duration, Instant};

use super::*;

/// How long the kernel may take to lend a priority.
const LIMIT: Duration = Duration::from_secs(60);

/// Whether the calling thread has a real-time priority, its own or a lent one: field 18 of its `stat` is below 0 then.
fn has_real_time_priority() -> bool {
    let stat = fs::read_to_string("/proc/thread-self/stat").expect("a thread may read its own state");
    // The name, in parentheses, may have spaces in it.
    let (_, fields) = stat.rsplit_once(") ").expect("the name is in parentheses");
    fields.split(' ').nth(15).expect("there are more fields").starts_with('-')
}

/// Waits until that is `expected`, for [`LIMIT`] at most.
fn becomes(expected: bool) -> bool {
    let begun = Instant::now();
    while has_real_time_priority() != expected {
        if begun.elapsed() > LIMIT {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

mod bound {
    #[punctual::app(main = false)]
    pub(super) mod app {
        use std::io::{Read, Write};
        use std::os::unix::net::UnixStream;

        use punctual::Mutex;

        use super::super::becomes;

        #[shared]
        struct Shared {
            boosted: bool,
        }

        #[local]
        struct Local {
            source: UnixStream,
            other_end: UnixStream,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            let (source, other_end) = UnixStream::pair().expect("sockets can be made");
            (Shared { boosted: false }, Local { source, other_end })
        }

        #[idle(shared = [boosted], local = [other_end])]
        fn idle(mut cx: idle::Context) {
            cx.shared.boosted.lock(|boosted| {
                cx.local.other_end.write_all(b"!").expect("there is room in the socket");
                *boosted = becomes(true);
            });
            assert!(becomes(false), "what was lent is given back");
        }

        #[task(binds = source, priority = 2, shared = [boosted], local = [source])]
        fn read(mut cx: read::Context) {
            cx.local.source.read_exact(&mut [0]).expect("it is ready");
            let boosted = cx.shared.boosted.lock(|boosted| *boosted);
            assert!(boosted, "the job waited for an ordinary thread");
            punctual::shutdown();
        }
    }
}

mod awaited {
    #[punctual::app(main = false)]
    pub(super) mod app {
        use std::io::Write;
        use std::os::unix::net::UnixStream;

        use punctual::Mutex;

        use super::super::becomes;

        #[shared]
        struct Shared {
            boosted: bool,
        }

        #[local]
        struct Local {
            source: UnixStream,
            other_end: UnixStream,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            let (source, other_end) = UnixStream::pair().expect("sockets can be made");
            read::spawn().expect("nothing waits yet");
            (Shared { boosted: false }, Local { source, other_end })
        }

        #[idle(shared = [boosted], local = [other_end])]
        fn idle(mut cx: idle::Context) {
            cx.shared.boosted.lock(|boosted| {
                cx.local.other_end.write_all(b"!").expect("there is room in the socket");
                *boosted = becomes(true);
            });
            assert!(becomes(false), "what was lent is given back");
        }

        #[task(priority = 2, shared = [boosted], local = [source])]
        async fn read(mut cx: read::Context) {
            punctual::readable(&*cx.local.source).await.expect("it can be waited for");
            let boosted = cx.shared.boosted.lock(|boosted| *boosted);
            assert!(boosted, "the job waited for an ordinary thread");
            punctual::shutdown();
        }
    }
}

#[test]
fn idle_has_the_priority_of_a_bound_task_that_waits_for_it() {
    privileges::no_runaways_here();
    if !privileges::real_time() {
        eprintln!("NOT TESTED: no real-time priority that could be lent");
        return;
    }
    let report = bound::app::run(Config::new()).expect("nothing keeps the app from starting");
    assert_eq!(report.outcome, Outcome::Shutdown);
}

#[test]
fn idle_has_the_priority_of_an_async_task_that_waits_for_it() {
    privileges::no_runaways_here();
    if !privileges::real_time() {
        eprintln!("NOT TESTED: no real-time priority that could be lent");
        return;
    }
    let report = awaited::app::run(Config::new()).expect("nothing keeps the app from starting");
    assert_eq!(report.outcome, Outcome::Shutdown);
}
