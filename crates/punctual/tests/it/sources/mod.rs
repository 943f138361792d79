//! Tasks bound to descriptors of every kind: releases, `pend`, replaced and closed descriptors.
//!
//! Exact tests run in virtual time, which ends when no descriptor is ready and no other work is
//! left.
#![cfg(feature = "monitoring")]

mod idle;
mod replaced;

use crate::{privileges, process};
use punctual::Config;
use punctual::report::Outcome;

fn both() -> [Config; 2] {
    [Config::new(), Config::new().virtual_time()]
}

mod kinds {
    use super::*;

    /// One task for each kind of descriptor; the run ends when each has got its expected data.
    #[punctual::app(main = false)]
    mod app {
        use std::io::{PipeReader, PipeWriter, Read, Write};
        use std::os::fd::OwnedFd;
        use std::os::unix::net::UnixStream;

        use punctual::prelude::*;
        use rustix::event::{EventfdFlags, eventfd};
        use rustix::time::{
            Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
            timerfd_settime,
        };

        #[shared]
        struct Shared {
            left: u32,
        }

        #[local]
        struct Local {
            event: OwnedFd,
            timer: OwnedFd,
            socket: UnixStream,
            pipe: PipeReader,
            others: (UnixStream, PipeWriter),
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            let event = eventfd(0, EventfdFlags::CLOEXEC).expect("eventfds can be made");
            for _ in 0..3 {
                rustix::io::write(&event, &1_u64.to_ne_bytes()).expect("there is room in the count");
            }
            let timer =
                timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).expect("timers can be made");
            let times = Itimerspec {
                it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
                it_value: Timespec { tv_sec: 0, tv_nsec: 1 },
            };
            timerfd_settime(&timer, TimerfdTimerFlags::empty(), &times).expect("the times are valid");
            let (socket, mut socket_end) = UnixStream::pair().expect("sockets can be made");
            socket_end.write_all(b"ab").expect("there is room in the socket");
            let (pipe, mut pipe_end) = std::io::pipe().expect("pipes can be made");
            pipe_end.write_all(b"xyz").expect("there is room in the pipe");
            let local = Local { event, timer, socket, pipe, others: (socket_end, pipe_end) };
            (Shared { left: 4 }, local)
        }

        /// Never runs: it keeps the other ends open.
        #[task(priority = 1, local = [others])]
        fn keeper(_: keeper::Context) {}

        fn done(left: &mut u32) {
            *left -= 1;
            if *left == 0 {
                punctual::shutdown();
            }
        }

        fn count(fd: &OwnedFd) -> u64 {
            let mut count = [0; 8];
            rustix::io::read(fd, &mut count).expect("it is ready");
            u64::from_ne_bytes(count)
        }

        /// Three events before the job are one job, which sees the count of three.
        #[task(binds = event, priority = 2, local = [event], shared = [left])]
        fn on_event(mut cx: on_event::Context) {
            assert_eq!(count(cx.local.event), 3);
            cx.shared.left.lock(done);
        }

        #[task(binds = timer, priority = 3, local = [timer], shared = [left])]
        fn on_timer(mut cx: on_timer::Context) {
            assert_eq!(count(cx.local.timer), 1);
            cx.shared.left.lock(done);
        }

        /// Reads one byte at a time, and is released again for the second.
        #[task(binds = socket, priority = 3, local = [socket], shared = [left])]
        fn on_socket(mut cx: on_socket::Context) {
            let mut byte = [0];
            cx.local.socket.read_exact(&mut byte).expect("it is ready");
            if byte == *b"b" {
                cx.shared.left.lock(done);
            }
        }

        /// Reads everything at once, and is not released again.
        #[task(binds = pipe, priority = 4, local = [pipe], shared = [left])]
        fn on_pipe(mut cx: on_pipe::Context) {
            let mut bytes = [0; 8];
            assert_eq!(cx.local.pipe.read(&mut bytes).expect("it is ready"), 3);
            cx.shared.left.lock(done);
        }
    }

    #[test]
    fn each_descriptor_type_releases_task() {
        let _alone = crate::alone();
        for config in both() {
            let report = app::run(config).expect("the app starts");
            assert_eq!(report.outcome, Outcome::Shutdown);
            let jobs =
                ["on_event", "on_timer", "on_socket", "on_pipe"].map(|name| report.task(name).unwrap().jobs);
            assert_eq!(jobs, [1, 1, 2, 1]);
        }
    }
}

mod by_hand {
    use super::*;

    #[punctual::app(main = false)]
    mod app {
        use std::os::unix::net::UnixStream;

        use punctual::prelude::*;

        #[shared]
        struct Shared {
            guarded: u32,
        }

        #[local]
        struct Local {
            quiet: UnixStream,
            other_end: UnixStream,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            let (quiet, other_end) = UnixStream::pair().expect("sockets can be made");
            conduct::spawn().unwrap();
            (Shared { guarded: 0 }, Local { quiet, other_end })
        }

        #[task(priority = 1, shared = [guarded], local = [other_end])]
        fn conduct(mut cx: conduct::Context) {
            cx.shared.guarded.lock(|guarded| {
                // At the level of `edge`, so it waits, and further events are merged with the
                // first.
                (0..5).for_each(|_| edge::pend());
                assert_eq!(*guarded, 0);
            });
            finish::spawn().unwrap();
        }

        #[task(binds = quiet, priority = 2, shared = [guarded], local = [quiet])]
        fn edge(mut cx: edge::Context) {
            let before = cx.shared.guarded.lock(|guarded| {
                *guarded += 1;
                *guarded
            });
            if before == 1 {
                // In the middle of a job, this is one more release.
                edge::pend();
                edge::pend();
            }
        }

        #[task(priority = 1, shared = [guarded])]
        fn finish(mut cx: finish::Context) {
            assert_eq!(cx.shared.guarded.lock(|guarded| *guarded), 2);
            punctual::shutdown();
        }

        #[shutdown]
        fn shutdown(_: shutdown::Context) {
            // The app has ended.
            edge::pend();
        }
    }

    #[test]
    fn task_is_pending_or_not() {
        let _alone = crate::alone();
        app::edge::pend();
        for config in both() {
            let report = app::run(config).expect("the app starts");
            assert_eq!(report.outcome, Outcome::Shutdown);
            assert_eq!(report.task("edge").map(|edge| edge.jobs), Some(2));
            assert_eq!(report.dropped_jobs, 0);
        }
    }
}

mod by_hand_replaced {
    use super::*;

    /// A job released without an event installs a source that is ready, while the old one is waited
    /// for.
    #[punctual::app(main = false)]
    mod app {
        use std::io::{Read, Write};
        use std::os::unix::net::UnixStream;

        use punctual::prelude::*;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            source: UnixStream,
            ready: Option<UnixStream>,
            others: [UnixStream; 2],
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            let (source, quiet) = UnixStream::pair().expect("sockets can be made");
            let (ready, mut busy) = UnixStream::pair().expect("sockets can be made");
            busy.write_all(b"!").expect("there is room in the socket");
            poke::spawn_after(2.millis()).unwrap();
            (Shared {}, Local { source, ready: Some(ready), others: [quiet, busy] })
        }

        #[task(priority = 1, local = [others])]
        fn poke(_: poke::Context) {
            read::pend();
        }

        #[task(binds = source, priority = 2, local = [source, ready])]
        fn read(cx: read::Context) {
            match cx.local.ready.take() {
                Some(ready) => *cx.local.source = ready,
                None => {
                    cx.local.source.read_exact(&mut [0]).expect("it is ready");
                    punctual::shutdown();
                }
            }
        }
    }

    #[test]
    fn waits_for_source_set_by_pended_job() {
        let _alone = crate::alone();
        // Limits the test in case of a lost release.
        let config = Config::new().until(punctual::Duration::from_secs(10));
        let report = app::run(config).expect("the app starts");
        assert_eq!((report.outcome, report.tasks[0].jobs), (Outcome::Shutdown, 2));
    }
}

mod above_and_below {
    use std::sync::atomic::AtomicU32;

    use super::*;

    /// A source that stays ready forever keeps its own level busy, and no level above it.
    #[punctual::app(main = false)]
    mod app {
        use std::os::unix::net::UnixStream;
        use std::sync::atomic::Ordering;

        use punctual::prelude::*;

        use super::RUNS;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            ready: UnixStream,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            // The other end is closed, and the task does not read.
            let (ready, _) = UnixStream::pair().expect("sockets can be made");
            stop::spawn_after(20.millis()).unwrap();
            (Shared {}, Local { ready })
        }

        #[task(binds = ready, priority = 1, local = [ready])]
        fn careless(_: careless::Context) {
            RUNS.fetch_add(1, Ordering::Relaxed);
        }

        #[task(priority = 2)]
        fn stop(_: stop::Context) {
            // Other threads may have had the CPU all the time.
            match RUNS.load(Ordering::Relaxed) {
                0..=20 => drop(stop::spawn_after(20.millis())),
                _ => punctual::shutdown(),
            }
        }
    }

    static RUNS: AtomicU32 = AtomicU32::new(0);

    #[test]
    fn unread_source_does_not_starve_higher_task() {
        let _alone = crate::alone();
        // Limits the test in case of a lost release.
        let config = Config::new().until(punctual::Duration::from_secs(10));
        let report = app::run(config).expect("the app starts");
        assert_eq!(report.outcome, Outcome::Shutdown);
        assert!(report.task("careless").is_some_and(|task| task.jobs > 1), "{report}");
    }
}
