//! A job waits for a resource that `idle`, an ordinary thread, holds: `idle` has the priority of
//! the job until it unlocks, regardless of how the job was released.
#![cfg(feature = "async")]

use std::fs;
use std::time::{Duration, Instant};

use crate::privileges;
use punctual::Config;
use punctual::report::Outcome;
use test_skip::{Need, skip};

/// Time limit for the kernel to lend a priority.
const LIMIT: Duration = Duration::from_secs(60);

/// Returns whether the calling thread has a real-time priority, its own or inherited: field 18 of
/// its `stat` is then negative.
fn has_real_time_priority() -> bool {
    let stat = fs::read_to_string("/proc/thread-self/stat").expect("a thread may read its own state");
    // The name, in parentheses, may have spaces in it.
    let (_, fields) = stat.rsplit_once(") ").expect("the name is in parentheses");
    fields.split(' ').nth(15).expect("there are more fields").starts_with('-')
}

/// Waits until that is `expected`, for at most [`LIMIT`].
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

/// Releaser of the job, while `idle` holds its resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// An event that a bound task waits for.
    Event,
    /// An event that an async task waits for.
    AwaitedEvent,
    /// A timer.
    Clock,
    /// `idle` itself.
    Idle,
    /// A foreign thread.
    ForeignThread,
    /// A job that `idle` does not delay.
    JobAbove,
}

#[punctual::app(main = false)]
mod app {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use punctual::prelude::*;

    use super::{By, becomes};

    #[shared]
    struct Shared {
        boosted: bool,
    }

    #[local]
    struct Local {
        by: By,
        source: UnixStream,
        other_end: UnixStream,
        awaited: UnixStream,
        other_awaited: UnixStream,
    }

    #[init]
    fn init(_: init::Context, by: By) -> (Shared, Local) {
        let pair = || UnixStream::pair().expect("sockets can be made");
        let ((source, other_end), (awaited, other_awaited)) = (pair(), pair());
        awaits::spawn().expect("nothing waits yet");
        (Shared { boosted: false }, Local { by, source, other_end, awaited, other_awaited })
    }

    #[idle(shared = [boosted], local = [by, other_end, other_awaited])]
    fn idle(mut cx: idle::Context) {
        let wanted = || wanted::spawn().expect("nothing waits yet");
        cx.shared.boosted.lock(|boosted| {
            match *cx.local.by {
                By::Event => cx.local.other_end.write_all(b"!").expect("there is room in the socket"),
                By::AwaitedEvent => {
                    cx.local.other_awaited.write_all(b"!").expect("there is room in the socket");
                }
                By::Clock => _ = wanted::spawn_after(1.millis()).expect("nothing waits yet"),
                By::Idle => wanted(),
                By::ForeignThread => std::thread::spawn(wanted).join().expect("it does not panic"),
                By::JobAbove => above::spawn().expect("nothing waits yet"),
            }
            *boosted = becomes(true);
        });
        assert!(becomes(false), "what was lent is given back");
    }

    #[task(priority = 3)]
    fn above(_: above::Context) {
        wanted::spawn().expect("nothing waits yet");
    }

    #[task(priority = 2, shared = [boosted])]
    fn wanted(mut cx: wanted::Context) {
        cx.shared.boosted.lock(|boosted| found(*boosted));
    }

    #[task(binds = source, priority = 2, shared = [boosted], local = [source])]
    fn read(mut cx: read::Context) {
        cx.local.source.read_exact(&mut [0]).expect("it is ready");
        cx.shared.boosted.lock(|boosted| found(*boosted));
    }

    #[task(priority = 2, shared = [boosted], local = [awaited])]
    async fn awaits(mut cx: awaits::Context) {
        punctual::readable(&*cx.local.awaited).await.expect("it can be waited for");
        cx.shared.boosted.lock(|boosted| found(*boosted));
    }

    fn found(boosted: bool) {
        assert!(boosted, "the job waited for an ordinary thread");
        punctual::shutdown();
    }
}

#[test]
fn idle_inherits_priority_of_the_waiting_job() {
    let _alone = crate::alone();
    if !privileges::real_time() {
        skip(Need::RealTime, "a priority that is lent");
        return;
    }
    for by in [By::Event, By::AwaitedEvent, By::Clock, By::Idle, By::ForeignThread, By::JobAbove] {
        let report = app::run(Config::new(), by).expect("the app starts");
        assert_eq!(report.outcome, Outcome::Shutdown, "{by:?}");
    }
}
