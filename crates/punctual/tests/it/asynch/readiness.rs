//! Waits for descriptors: of every kind, two for one, from other threads, and their times in
//! virtual time.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use punctual::report::Outcome;
use punctual::{Config, Duration};
use rustix::event::{EventfdFlags, eventfd};

use crate::asynch::virtual_time;
use crate::log::Log;

/// Threads and virtual time; threads with a limit, in case a lost wake would hang the test.
pub(super) fn both() -> [Config; 2] {
    [Config::new().until(Duration::from_secs(60)), virtual_time()]
}

/// Returns a pair of nonblocking sockets.
fn pair() -> (UnixStream, UnixStream) {
    let pair = UnixStream::pair().expect("sockets can be made");
    pair.0.set_nonblocking(true).expect("a socket can be made not to block");
    pair.1.set_nonblocking(true).expect("a socket can be made not to block");
    pair
}

pub(super) fn counter() -> OwnedFd {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("eventfds can be made")
}

pub(super) fn add(fd: impl AsFd) {
    rustix::io::write(fd, &1_u64.to_ne_bytes()).expect("there is room in the count");
}

pub(super) fn take(fd: impl AsFd) -> Option<u64> {
    let mut count = [0; 8];
    rustix::io::read(fd, &mut count).is_ok().then(|| u64::from_ne_bytes(count))
}

mod kinds {
    use super::*;

    #[punctual::app(main = false)]
    mod app {
        use std::io::{PipeReader, PipeWriter, Read, Write};
        use std::os::fd::OwnedFd;
        use std::os::unix::net::UnixStream;

        use punctual::prelude::*;

        use super::{add, counter, pair};

        #[shared]
        struct Shared {
            left: u32,
            event: OwnedFd,
        }

        #[local]
        struct Local {
            pipe: PipeReader,
            pipe_end: Option<PipeWriter>,
            socket: UnixStream,
            socket_end: UnixStream,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            let (pipe, pipe_end) = std::io::pipe().expect("pipes can be made");
            let (socket, socket_end) = pair();
            from_pipe::spawn().unwrap();
            to_socket::spawn().unwrap();
            first::spawn().unwrap();
            second::spawn().unwrap();
            makes_ready::spawn().unwrap();
            (
                Shared { left: 4, event: counter() },
                Local { pipe, pipe_end: Some(pipe_end), socket, socket_end },
            )
        }

        fn done(left: &mut u32) {
            *left -= 1;
            if *left == 0 {
                punctual::shutdown();
            }
        }

        #[task(priority = 3, local = [pipe], shared = [left])]
        async fn from_pipe(mut cx: from_pipe::Context) {
            for byte in *b"ab" {
                punctual::readable(cx.local.pipe).await.expect("a pipe can be waited for");
                let mut one = [0];
                assert_eq!(cx.local.pipe.read(&mut one).expect("it is ready"), 1);
                assert_eq!(one[0], byte);
            }
            // The other end is closed, which makes it readable as well.
            punctual::readable(cx.local.pipe).await.expect("a pipe can be waited for");
            assert_eq!(cx.local.pipe.read(&mut [0; 8]).expect("it is ready"), 0);
            cx.shared.left.lock(done);
        }

        /// Fills the socket, and waits until there is room.
        #[task(priority = 2, local = [socket], shared = [left])]
        async fn to_socket(mut cx: to_socket::Context) {
            punctual::writable(cx.local.socket).await.expect("a socket can be waited for");
            while cx.local.socket.write(&[0; 4096]).is_ok() {}
            emptied::spawn().unwrap();
            punctual::writable(cx.local.socket).await.expect("a socket can be waited for");
            assert!(cx.local.socket.write(&[0; 1]).is_ok(), "there is room");
            cx.shared.left.lock(done);
        }

        #[task(priority = 1, local = [socket_end])]
        fn emptied(cx: emptied::Context) {
            while cx.local.socket_end.read(&mut [0; 4096]).is_ok() {}
        }

        /// Two wait for one descriptor, at two levels. Neither consumes the data, so both continue.
        #[task(priority = 3, shared = [left, &event])]
        async fn first(mut cx: first::Context) {
            punctual::readable(cx.shared.event).await.expect("an eventfd can be waited for");
            cx.shared.left.lock(done);
        }

        #[task(priority = 1, shared = [left, &event])]
        async fn second(mut cx: second::Context) {
            punctual::readable(cx.shared.event).await.expect("an eventfd can be waited for");
            cx.shared.left.lock(done);
        }

        #[task(priority = 1, local = [pipe_end], shared = [&event])]
        async fn makes_ready(cx: makes_ready::Context) {
            punctual::delay(1.millis()).await;
            add(cx.shared.event);
            for byte in [b"a", b"b"] {
                punctual::delay(1.millis()).await;
                cx.local.pipe_end.as_ref().expect("it is open").write_all(byte).expect("there is room");
            }
            punctual::delay(1.millis()).await;
            *cx.local.pipe_end = None;
        }
    }

    #[test]
    fn each_descriptor_type_wakes_task() {
        let _alone = crate::alone();
        for config in [both(), both()].into_iter().flatten() {
            let report = app::run(config).expect("the app starts");
            assert_eq!(report.outcome, Outcome::Shutdown);
            let threads = report.settings.threads.iter().filter(|thread| thread.thread == "event async");
            assert_eq!(threads.count(), usize::from(!report.virtual_time));
        }
    }
}

mod foreign {
    use std::io::{Read, Write};

    use super::*;

    #[punctual::app(main = false)]
    mod app {
        use std::io::{ErrorKind, Read, Write};
        use std::os::fd::OwnedFd;
        use std::os::unix::net::UnixStream;

        use punctual::prelude::*;

        use super::take;

        #[shared]
        struct Shared {
            left: u32,
        }

        #[local]
        struct Local {
            socket: UnixStream,
            event: OwnedFd,
        }

        #[init]
        fn init(_: init::Context, socket: UnixStream, event: OwnedFd) -> (Shared, Local) {
            answers::spawn().unwrap();
            counts::spawn().unwrap();
            (Shared { left: 2 }, Local { socket, event })
        }

        fn done(left: &mut u32) {
            *left -= 1;
            if *left == 0 {
                punctual::shutdown();
            }
        }

        /// Waits every time: the other side sends after it has received the answer.
        #[task(priority = 2, local = [socket], shared = [left])]
        async fn answers(mut cx: answers::Context) {
            let mut bytes = [0; 4];
            for number in 0..1000_u32 {
                while let Err(error) = cx.local.socket.read_exact(&mut bytes) {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    punctual::readable(cx.local.socket).await.expect("a socket can be waited for");
                }
                assert_eq!(u32::from_ne_bytes(bytes), number);
                cx.local.socket.write_all(&bytes).expect("there is room in the socket");
            }
            cx.shared.left.lock(done);
        }

        /// Times out again and again, while events occur.
        #[task(priority = 1, local = [event], shared = [left])]
        async fn counts(mut cx: counts::Context) {
            let mut count = 0;
            while count < 1000 {
                let _ = punctual::timeout_after(20.micros(), punctual::readable(cx.local.event)).await;
                count += take(&*cx.local.event).unwrap_or(0);
            }
            assert_eq!(count, 1000);
            cx.shared.left.lock(done);
        }
    }

    #[test]
    fn foreign_threads_make_task_ready() {
        let _alone = crate::alone();
        for _ in 0..2 {
            let (socket, mut other_end) = pair();
            other_end.set_nonblocking(false).expect("a socket can be made to block");
            let event = counter();
            let other_event = event.try_clone().expect("a descriptor can be duplicated");
            let report = std::thread::scope(|scope| {
                scope.spawn(move || {
                    for number in 0..1000_u32 {
                        other_end.write_all(&number.to_ne_bytes()).expect("there is room in the socket");
                        add(&other_event);
                        let mut answer = [0; 4];
                        other_end.read_exact(&mut answer).expect("there is an answer");
                        assert_eq!(u32::from_ne_bytes(answer), number);
                    }
                });
                app::run(both()[0].clone(), socket, event).unwrap()
            });
            assert_eq!(report.outcome, Outcome::Shutdown);
        }
    }
}

mod virtual_times {
    use super::*;

    #[punctual::app(main = false)]
    mod app {
        use std::os::fd::OwnedFd;

        use punctual::prelude::*;

        use super::{add, counter, take};
        use crate::log::Log;

        #[shared]
        struct Shared {
            log: Log,
            event: OwnedFd,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context, log: Log) -> (Shared, Local) {
            waits::spawn().unwrap();
            writes::spawn().unwrap();
            (Shared { log, event: counter() }, Local {})
        }

        #[task(priority = 2, shared = [&log, &event])]
        async fn waits(cx: waits::Context) {
            loop {
                punctual::readable(cx.shared.event).await.expect("an eventfd can be waited for");
                assert_eq!(take(cx.shared.event), Some(1));
                cx.shared.log.note("read");
            }
        }

        #[task(priority = 1, shared = [&log, &event])]
        async fn writes(cx: writes::Context) {
            punctual::delay(5.millis()).await;
            add(cx.shared.event);
            cx.shared.log.note("written");
            punctual::delay(1.millis()).await;
            add(cx.shared.event);
            cx.shared.log.note("written again");
            punctual::spend(2.millis());
            cx.shared.log.note("time has passed");
        }
    }

    /// Readiness is checked when no work is left, and while time passes. A wait alone does not keep
    /// a run alive.
    #[test]
    fn descriptors_are_looked_at_as_those_of_bound_tasks() {
        let log = Log::default();
        let report = app::run(virtual_time(), log.clone()).unwrap();
        let expected =
            [(5, "written"), (5, "read"), (6, "written again"), (6, "read"), (8, "time has passed")];
        assert_eq!(log.take(), expected);
        assert_eq!(report.outcome, Outcome::Quiescent);
    }
}
