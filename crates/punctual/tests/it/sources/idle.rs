//! Sources at their end: the first job is an event, and the task chooses the behavior after it.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use punctual::{Duration, Report, StartError};
use rustix::event::{EventfdFlags, eventfd};
use test_skip::{Need, skip};

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

fn event(count: u32) -> OwnedFd {
    eventfd(count, EventfdFlags::CLOEXEC).expect("eventfds can be made")
}

fn source(kind: Kind) -> (OwnedFd, Option<UnixStream>) {
    let pair = || UnixStream::pair().expect("sockets can be made");
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

/// Number of jobs of a source that is always ready, below the priority of the tested one, after
/// which the tested one would have released another job.
const ROUNDS: u32 = 20;

/// Behavior of an app, besides its policy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    kind: Kind,
    /// The second job replaces the source.
    replace: bool,
    /// Number of jobs after which [`ROUNDS`] begins.
    jobs: u32,
}

impl Plan {
    /// Ends by itself, without [`ROUNDS`].
    fn endless(kind: Kind) -> Self {
        Self { kind, replace: false, jobs: u32::MAX }
    }

    fn ends_after(kind: Kind, jobs: u64) -> Self {
        Self { kind, replace: false, jobs: jobs.try_into().expect("it is a small number") }
    }
}

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
                jobs: u32,
                rounds: OwnedFd,
                begin: OwnedFd,
            }

            #[init]
            fn init(_: init::Context, plan: Plan) -> (Shared, Local) {
                let Plan { kind, replace, jobs } = plan;
                let (source, other_end) = source(kind);
                if replace {
                    poke::spawn_after(3.millis()).unwrap();
                }
                let rounds = event(u32::from(jobs == 0));
                let begin = rounds.try_clone().expect("descriptors can be duplicated");
                let next = replace.then(|| pipe(b"c"));
                (Shared {}, Local { source, other_end, next, jobs, rounds, begin })
            }

            /// Never reads its source, so each job is followed by another one.
            #[task(binds = rounds, priority = 1, local = [rounds, left: u32 = ROUNDS])]
            fn round(cx: round::Context) {
                *cx.local.left -= 1;
                if *cx.local.left == 0 {
                    punctual::shutdown();
                }
            }

            #[task(priority = 1, local = [other_end])]
            fn poke(_: poke::Context) {
                read::pend();
            }

            #[task(
                binds = source, priority = 2, on_idle_source = $policy,
                local = [source, next, jobs, begin, count: u32 = 0]
            )]
            fn read(cx: read::Context) {
                *cx.local.count += 1;
                if *cx.local.count == ENOUGH {
                    punctual::shutdown();
                }
                if *cx.local.count == *cx.local.jobs {
                    rustix::io::write(&*cx.local.begin, &1_u64.to_ne_bytes()).expect("there is room");
                }
                // Its source is at its end, so this one is pended.
                if *cx.local.count == 2
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

type Run = fn(Config, Plan) -> Result<Report, StartError>;

/// Maximum duration of a run on threads, in which an expected job may be missing.
const RUN_LIMIT: Duration = Duration::from_secs(30);

/// On threads and in virtual time.
fn each(run: Run, plan: Plan) -> [Report; 2] {
    let threads = Config::new().until(RUN_LIMIT);
    [threads, Config::new().virtual_time()].map(|config| run(config, plan).expect("the app starts"))
}

fn jobs(report: &Report) -> u64 {
    report.task("read").expect("the report has every task").jobs
}

fn cpus() -> usize {
    rustix::thread::sched_getaffinity(None).map_or(1, |cpus| cpus.count() as usize)
}

#[test]
fn report_counts_releases_of_every_timer() {
    let _alone = crate::alone();
    for (kind, first) in AT_THEIR_END {
        for config in both() {
            let report = every::run(config, Plan::endless(kind)).expect("the app starts");
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
            for report in each(run, Plan::ends_after(kind, jobs)) {
                assert_eq!(report.outcome, Outcome::Shutdown, "{kind:?}");
                assert_eq!(
                    report.task("read").map(|read| (read.jobs, read.idle_releases)),
                    Some((jobs, 0)),
                    "{kind:?}"
                );
            }
        }
    }
}

/// The other tests rely on it: a job that is released too often is released before the run ends.
#[test]
fn source_at_its_end_releases_job_in_each_round() {
    let _alone = crate::alone();
    for (kind, expected) in AT_THEIR_END {
        let [threads, virtual_time] = each(every::run, Plan::ends_after(kind, expected));
        assert!(jobs(&virtual_time) > expected, "{kind:?}: {virtual_time}");
        if privileges::real_time() {
            assert!(jobs(&threads) > expected, "{kind:?}: {threads}");
        }
    }
    if !privileges::real_time() {
        skip(Need::RealTime, "the order of threads that wait for sources");
    }
}

#[test]
fn replacing_source_rearms_end_of_file() {
    let _alone = crate::alone();
    for report in each(once::run, Plan { kind: Kind::SocketHungUp, replace: true, jobs: 3 }) {
        assert_eq!(report.outcome, Outcome::Shutdown, "{report}");
        // For the end; by `pend`, which reads the data of the other source; and for the end of
        // that.
        assert_eq!(jobs(&report), 3, "{report}");
    }
}

#[test]
fn stop_ends_app_after_job_observed_it() {
    let _alone = crate::alone();
    for (kind, expected) in AT_THEIR_END {
        for report in each(stop::run, Plan::endless(kind)) {
            assert_eq!(report.outcome, Outcome::IdleSource { task: "read" }, "{kind:?}");
            assert_eq!((report.exit_code(), jobs(&report)), (1, expected), "{kind:?}");
        }
    }
}

#[test]
fn live_object_is_not_ended() {
    let _alone = crate::alone();
    for run in [once::run as Run, stop::run] {
        for report in each(run, Plan::ends_after(Kind::QuietEventfd, 0)) {
            assert_eq!((jobs(&report), report.outcome), (0, Outcome::Shutdown));
        }
        for config in both() {
            let report = run(config, Plan::endless(Kind::UnreadEventfd)).expect("the app starts");
            assert_eq!(report.outcome, Outcome::Shutdown);
            assert_eq!(report.task("read").map(|read| read.idle_releases), Some(0));
        }
    }
}

#[test]
#[ignore = "a program that another test runs"]
fn program() {
    process::exit(punctual::export::main(|config| every::run(config, Plan::endless(Kind::SocketHungUp))));
}

#[test]
fn warns_once_of_consecutive_jobs() {
    let mut command = process::program("sources::idle::program");
    privileges::no_runaways(&mut command);
    let ended = process::start(command).end();
    assert_eq!(ended.code, 0, "{ended:?}");
    let printed = "the event source of task `read` is at its end and has released 100 consecutive jobs";
    assert_eq!(ended.output.matches(printed).count(), 1, "{ended:?}");
}
