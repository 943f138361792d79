//! The guard does not attribute the executor's own operations to jobs.

use punctual::config::Guard;

use super::{config, each, has_line};

/// Spawns up, down and across, locks within and across partitions, timers, waits of every kind,
/// messages.
#[punctual::app(main = false, partitions = [near, far])]
mod app {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use punctual::prelude::*;
    use rustix::event::{EventfdFlags, eventfd};

    #[shared]
    struct Shared {
        across: u64,
        within: u64,
    }

    #[local]
    struct Local {
        event: OwnedFd,
        line: UnixStream,
        other_end: UnixStream,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("eventfds can be made");
        let (line, other_end) = UnixStream::pair().expect("sockets can be made");
        other_end.set_nonblocking(true).expect("a socket can be made not to block");
        (Shared { across: 0, within: 0 }, Local { event, line, other_end })
    }

    #[task(priority = 2, core = near, period = 1.millis(), shared = [across, within], local = [other_end, rounds: u32 = 0])]
    fn tick(mut cx: tick::Context) {
        punctual::log!(Info, "round {}", *cx.local.rounds);
        *cx.local.rounds += 1;
        let _ = rustix::io::write(&*cx.local.other_end, b"!");
        let _ = higher::spawn();
        let _ = lower::spawn();
        let _ = away::spawn();
        let _ = waits::spawn();
        let _ = timed::spawn_after(100.micros()).map(|timer| timer.reschedule_after(50.micros()).map(drop));
        cx.shared.across.lock(|across| {
            *across += 1;
            // Long enough that the other partition has to wait for it, and sometimes to sleep.
            punctual::spend(100.micros());
        });
        cx.shared.within.lock(|within| *within += 1);
        if *cx.local.rounds == 50 {
            punctual::shutdown();
        }
    }

    #[task(priority = 3, core = near, shared = [within])]
    fn higher(mut cx: higher::Context) {
        cx.shared.within.lock(|within| *within += 1);
    }

    #[task(priority = 1, core = near)]
    fn lower(_: lower::Context) {
        assert!(punctual::now().as_ticks() < u64::MAX);
    }

    #[task(priority = 1, core = near)]
    fn timed(_: timed::Context) {}

    #[task(priority = 1, core = far, shared = [across])]
    fn away(mut cx: away::Context) {
        cx.shared.across.lock(|across| *across += 1);
        let _ = higher::spawn();
    }

    #[task(binds = line, priority = 2, core = far, local = [line])]
    fn edge(cx: edge::Context) {
        // A blocking descriptor, but there is data to read.
        let _ = rustix::io::read(&*cx.local.line, &mut [0; 8]);
    }

    #[task(priority = 2, core = near, local = [event])]
    async fn waits(cx: waits::Context) {
        let event = &*cx.local.event;
        punctual::delay(20.micros()).await;
        rustix::io::write(event, &1_u64.to_ne_bytes()).expect("there is room in the count");
        punctual::readable(event).await.expect("an eventfd can be waited for");
        rustix::io::read(event, &mut [0; 8]).expect("it is ready");
    }
}

/// The same with a thread for each level on any CPU.
#[punctual::app(main = false, executor = "global")]
mod global {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        sum: u64,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { sum: 0 }, Local {})
    }

    #[task(priority = 1, period = 1.millis(), shared = [sum], local = [rounds: u32 = 0])]
    fn slow(mut cx: slow::Context) {
        let _ = fast::spawn();
        cx.shared.sum.lock(|sum| {
            *sum += 1;
            punctual::spend(100.micros());
        });
        *cx.local.rounds += 1;
        if *cx.local.rounds == 50 {
            punctual::shutdown();
        }
    }

    #[task(priority = 2, shared = [sum])]
    fn fast(mut cx: fast::Context) {
        cx.shared.sum.lock(|sum| *sum += 1);
    }
}

#[test]
#[ignore = "a program of the test below"]
fn program() {
    for report in [app::run(config(Guard::Report)), global::run(config(Guard::Report))] {
        let report = report.expect("nothing can be missing");
        println!("{report}");
        assert_eq!(report.exit_code(), 0);
        assert!(report.tasks.iter().all(|task| !task.measured || task.jobs > 0), "everything was tried");
        if report.tasks.iter().any(|task| !task.findings.is_empty()) {
            println!("FOUND SOMETHING");
        }
        assert!(report.settings.notes.iter().any(|note| note.contains("the guard monitors all jobs")));
    }
    println!("TRIED EVERYTHING");
}

#[test]
fn executor_work_is_not_a_finding() {
    each("clean::program", "", |ended, _| {
        assert!(has_line(ended, &["TRIED EVERYTHING"]), "{}", ended.output);
        assert!(!has_line(ended, &["FOUND SOMETHING"]), "{}", ended.output);
    });
}
