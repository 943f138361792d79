//! Sources at their end: the first job is an event, and the task chooses the behavior after it.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use punctual::{Duration, Report, StartError};
use rustix::event::{EventfdFlags, eventfd};

use super::*;

/// Kind of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// With two bytes in it.
    PipeWithoutWriter,
    SocketHungUp,
    /// The other end can still read.
    SocketHalfClosed,
    FileAtItsEnd,
    /// The standard input of a service.
    DevNull,
    /// A writing end, with a permanent error.
    PipeWithoutReader,
    /// It is never ready.
    QuietEventfd,
    /// It is always ready, and has data.
    UnreadEventfd,
}

const AT_THEIR_END: [(Kind, u64); 6] = [
    (Kind::PipeWithoutWriter, 3),
    (Kind::SocketHungUp, 1),
    (Kind::SocketHalfClosed, 1),
    (Kind::FileAtItsEnd, 1),
    (Kind::DevNull, 1),
    (Kind::PipeWithoutReader, 1),
];

fn source(kind: Kind) -> (OwnedFd, Option<UnixStream>) {
    let pair = || UnixStream::pair().expect("sockets can be made");
    let event = |count| eventfd(count, EventfdFlags::CLOEXEC).expect("eventfds can be made");
    match kind {
        Kind::PipeWithoutWriter => (pipe(b"ab"), None),
        Kind::SocketHungUp => {
            let (socket, _) = pair();
            (hung_up(socket), None)
        }
        Kind::SocketHalfClosed => {
            let (socket, other_end) = pair();
            other_end.shutdown(std::net::Shutdown::Write).expect("it is connected");
            (socket.into(), Some(other_end))
        }
        Kind::FileAtItsEnd => {
            let mut file = File::open("/proc/self/exe").expect("a process can read its executable");
            file.seek(SeekFrom::End(0)).expect("files can be sought in");
            (file.into(), None)
        }
        Kind::DevNull => (File::open("/dev/null").expect("every system has it").into(), None),
        Kind::PipeWithoutReader => {
            let (_, writer) = std::io::pipe().expect("pipes can be made");
            (hung_up(writer), None)
        }
        Kind::QuietEventfd => (event(0), None),
        Kind::UnreadEventfd => (event(1), None),
    }
}

/// A pipe without a writer.
fn pipe(text: &[u8]) -> OwnedFd {
    let (reader, mut writer) = std::io::pipe().expect("pipes can be made");
    writer.write_all(text).expect("there is room in the pipe");
    drop(writer);
    hung_up(reader)
}

/// Returns the descriptor once its other end is closed.
fn hung_up(fd: impl Into<OwnedFd>) -> OwnedFd {
    let fd = fd.into();
    crate::wait_until_hung_up(&fd);
    fd
}

/// Number of jobs after which the app is shut down.
const ENOUGH: u32 = 150;

macro_rules! app {
    ($name:ident, $policy:ident, $($arguments:tt)*) => {
        #[punctual::app(main = false, $($arguments)*)]
        mod $name {
            use punctual::prelude::*;

            use super::*;

            #[shared]
            struct Shared {}

            #[local]
            struct Local {
                source: OwnedFd,
                other_end: Option<UnixStream>,
                next: Option<OwnedFd>,
            }

            #[init]
            fn init(_: init::Context, kind: Kind, replace: bool) -> (Shared, Local) {
                let (source, other_end) = source(kind);
                if replace {
                    poke::spawn_after(3.millis()).unwrap();
                }
                (Shared {}, Local { source, other_end, next: replace.then(|| pipe(b"c")) })
            }

            #[task(priority = 1, local = [other_end])]
            fn poke(_: poke::Context) {
                read::pend();
            }

            #[task(
                binds = source, priority = 2, on_idle_source = $policy, local = [source, next, jobs: u32 = 0]
            )]
            fn read(cx: read::Context) {
                *cx.local.jobs += 1;
                if *cx.local.jobs == ENOUGH {
                    punctual::shutdown();
                }
                // Its source is at its end, so this one is pended.
                if *cx.local.jobs == 2
                    && let Some(next) = cx.local.next.take()
                {
                    *cx.local.source = next;
                }
                let mut byte = [0];
                let kind = rustix::io::ioctl_fionread(&*cx.local.source);
                if kind.is_ok_and(|left| left > 0) {
                    rustix::io::read(&*cx.local.source, &mut byte).expect("it is ready");
                }
            }
        }
    };
}

app!(every, every,);
app!(once, once,);
app!(stop, stop,);
app!(once_polling, once, partitions = [fast(poll)]);
app!(once_global, once, executor = "global");

type Run = fn(Config, Kind, bool) -> Result<Report, StartError>;

/// On threads for a while that suffices for every job even on a busy machine, and in virtual time.
fn each(run: Run, kind: Kind, replace: bool) -> [Report; 2] {
    let threads = Config::new().until(Duration::from_millis(250));
    [threads, Config::new().virtual_time()].map(|config| run(config, kind, replace).expect("the app starts"))
}

fn cpus() -> usize {
    rustix::thread::sched_getaffinity(None).map_or(1, |cpus| cpus.count() as usize)
}

#[test]
fn report_counts_releases_of_every_timer() {
    let _alone = crate::alone();
    for (kind, first) in AT_THEIR_END {
        for config in both() {
            let report = every::run(config, kind, false).expect("the app starts");
            assert_eq!(report.outcome, Outcome::Shutdown, "{kind:?}");
            let read = report.task("read").expect("the report has every task");
            assert!(read.jobs >= ENOUGH.into(), "{kind:?}: {report}");
            // The last one released may not have run.
            let released = first + read.idle_releases;
            assert!(released == read.jobs || released == read.jobs + 1, "{kind:?}: {report}");
            assert!(report.to_string().contains("found no data"), "{report}");
        }
    }
}

#[test]
fn releases_one_job_for_end_of_file() {
    let _alone = crate::alone();
    let mut runs: Vec<Run> = vec![once::run, once_global::run];
    if cpus() > 1 {
        runs.push(once_polling::run);
    }
    for run in runs {
        for (kind, jobs) in AT_THEIR_END {
            for report in each(run, kind, false) {
                assert_eq!(
                    report.task("read").map(|read| (read.jobs, read.idle_releases)),
                    Some((jobs, 0)),
                    "{kind:?}"
                );
            }
        }
    }
}

#[test]
fn replacing_source_rearms_end_of_file() {
    let _alone = crate::alone();
    for report in each(once::run, Kind::SocketHungUp, true) {
        // For the end; by `pend`, which reads the data of the other source; and for the end of
        // that.
        let jobs = report.task("read").map(|read| read.jobs);
        assert_eq!(jobs, Some(3), "{report}");
    }
}

#[test]
fn stop_ends_app_after_job_observed_it() {
    let _alone = crate::alone();
    for (kind, jobs) in AT_THEIR_END {
        for report in each(stop::run, kind, false) {
            assert_eq!(report.outcome, Outcome::IdleSource { task: "read" }, "{kind:?}");
            assert_eq!(
                (report.exit_code(), report.task("read").map(|read| read.jobs)),
                (1, Some(jobs)),
                "{kind:?}"
            );
        }
    }
}

#[test]
fn live_object_is_not_ended() {
    let _alone = crate::alone();
    for run in [once::run as Run, stop::run] {
        for report in each(run, Kind::QuietEventfd, false) {
            assert_eq!(report.task("read").map(|read| read.jobs), Some(0));
            assert!(matches!(report.outcome, Outcome::TimeUp | Outcome::Quiescent), "{report}");
        }
        for config in both() {
            let report = run(config, Kind::UnreadEventfd, false).expect("the app starts");
            assert_eq!(report.outcome, Outcome::Shutdown);
            assert_eq!(report.task("read").map(|read| read.idle_releases), Some(0));
        }
    }
}

#[test]
#[ignore = "a program that another test runs"]
fn program() {
    process::exit(punctual::export::main(|config| every::run(config, Kind::SocketHungUp, false)));
}

#[test]
fn warns_once_of_consecutive_jobs() {
    let mut command = process::program("sources::idle::program");
    privileges::no_runaways(&mut command);
    let ended = process::start(command).end();
    assert_eq!(ended.code, 0, "{ended:?}");
    let said = "the event source of task `read` is at its end and has released 100 consecutive jobs";
    assert_eq!(ended.output.matches(said).count(), 1, "{ended:?}");
}
