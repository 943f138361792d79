//! Unwritable standard error: a full disk, a pipe without a reader, a full pipe, a closed
//! descriptor.

use std::fs::File;
use std::io::{PipeReader, Read, Write};
use std::os::fd::AsRawFd;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::faults::{EXECUTORS, Executor, executors};
use crate::privileges;
use crate::process::{self, Ended, Running};

/// Kind of standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stderr {
    FullDisk,
    PipeWithoutReader,
    FullPipe,
    /// Closed by the program itself, because its runtime would open it again.
    Closed,
}

const STDERRS: [Stderr; 4] = [Stderr::FullDisk, Stderr::PipeWithoutReader, Stderr::FullPipe, Stderr::Closed];

impl Stderr {
    /// Returns the descriptor for the program, and the pipe end that has to live as long.
    fn open(self) -> (Stdio, Option<PipeReader>) {
        let full = || File::options().write(true).open("/dev/full").expect("every Linux has it").into();
        match self {
            Self::FullDisk | Self::Closed => (full(), None),
            Self::PipeWithoutReader => (std::io::pipe().expect("pipes can be made").1.into(), None),
            Self::FullPipe => {
                let (reader, writer) = std::io::pipe().expect("pipes can be made");
                // SAFETY: the descriptor is open, and the flag only changes how writes to it fail.
                let set =
                    |flags: libc::c_int| unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETFL, flags) };
                set(libc::O_NONBLOCK);
                while (&writer).write(&[b' '; 4096]).is_ok() {}
                // The program shares the flag.
                set(0);
                (writer.into(), Some(reader))
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// A job panics.
    Panics,
    /// A job panics in a critical section, and so do all later steps.
    PanicsAllOver,
    /// Nothing happens until a signal arrives.
    Waits,
    /// A call given to `background::submit` panics.
    CallPanics,
    /// A background thread panics, and may block while printing it.
    HelperPanics,
}

const SCENARIOS: [Scenario; 5] = [
    Scenario::Panics,
    Scenario::PanicsAllOver,
    Scenario::Waits,
    Scenario::CallPanics,
    Scenario::HelperPanics,
];

/// Starts a helper that panics, and gives it some time.
fn failing_helper() {
    let helper = punctual::background::spawn("fails", || panic!("here")).expect("threads can be started");
    let begun = Instant::now();
    while !helper.is_finished() && begun.elapsed() < Duration::from_millis(200) {
        thread::yield_now();
    }
    assert!(!helper.is_finished() || helper.join().is_err());
}

macro_rules! app {
    ($name:ident, $($arguments:tt)*) => {
        #[punctual::app(main = false, $($arguments)*)]
        mod $name {
            use punctual::prelude::*;

            use super::Scenario;

            struct Fragile(Scenario);

            impl Drop for Fragile {
                fn drop(&mut self) {
                    assert!(self.0 != Scenario::PanicsAllOver, "a destructor");
                }
            }

            #[shared]
            struct Shared {
                fragile: Fragile,
            }

            #[local]
            struct Local {
                scenario: Scenario,
            }

            #[init]
            fn init(_: init::Context, scenario: Scenario) -> (Shared, Local) {
                if scenario == Scenario::HelperPanics {
                    super::failing_helper();
                }
                job::spawn().unwrap();
                (Shared { fragile: Fragile(scenario) }, Local { scenario })
            }

            #[task(priority = 2, shared = [fragile])]
            fn job(mut cx: job::Context) {
                match cx.shared.fragile.lock(|fragile| fragile.0) {
                    Scenario::Panics => panic!("here"),
                    Scenario::PanicsAllOver => {
                        rest::spawn(Fragile(Scenario::PanicsAllOver)).ok().unwrap();
                        cx.shared.fragile.lock(|_| panic!("here"))
                    }
                    Scenario::Waits => println!("READY"),
                    Scenario::CallPanics => punctual::background::submit(|| panic!("here")).expect("there is room"),
                    Scenario::HelperPanics => punctual::shutdown(),
                }
            }

            #[task(priority = 1)]
            fn rest(_: rest::Context, _fragile: Fragile) {}

            #[shutdown(local = [scenario])]
            fn shutdown(cx: shutdown::Context) {
                println!("HOOK");
                assert!(*cx.local.scenario != Scenario::PanicsAllOver, "the hook");
            }
        }
    };
}

app!(partition,);
app!(polling, partitions = [fast(poll)]);
app!(global, executor = "global");

#[test]
#[ignore = "a program that the other tests run"]
fn program() {
    if process::chosen("STDERR", STDERRS) == Stderr::Closed {
        // SAFETY: no other code uses the descriptor.
        unsafe { libc::close(2) };
    }
    let scenario = process::chosen("SCENARIO", SCENARIOS);
    process::exit(match process::chosen("EXECUTOR", EXECUTORS) {
        Executor::Partition => punctual::export::main(|config| partition::run(config, scenario)),
        Executor::Polling => punctual::export::main(|config| polling::run(config, scenario)),
        Executor::Global => punctual::export::main(|config| global::run(config, scenario)),
    });
}

/// Runs the app on every executor, with and without privileges, with every unwritable standard
/// error.
fn each(scenario: Scenario, code: i32, then: impl Fn(Running) -> Ended + Sync) {
    for stderr in STDERRS {
        for executor in executors() {
            for mut command in privileges::with_and_without(process::program("faults::unwritable::program")) {
                command.env("SCENARIO", format!("{scenario:?}")).env("EXECUTOR", format!("{executor:?}"));
                command.env("STDERR", format!("{stderr:?}")).env("PUNCTUAL_REPORT", "1");
                let (stdio, _reader) = stderr.open();
                // An unnoticed panic would end differently: without the hook and with another code,
                // or never.
                let ended = then(process::start_with(command, process::LIMIT, stdio));
                let what = format!("{scenario:?}, {stderr:?}, {executor:?}: {ended:?}");
                assert_eq!(ended.code, code, "{what}");
                assert_eq!(ended.output.matches("HOOK").count(), 1, "{what}");
            }
        }
    }
}

#[test]
fn panic_stops_app_and_runs_hook() {
    each(Scenario::Panics, 101, Running::end);
}

#[test]
fn panicking_destructor_of_submitted_call_stops_app() {
    each(Scenario::CallPanics, 101, Running::end);
}

#[test]
fn helper_panic_is_not_a_fault() {
    each(Scenario::HelperPanics, 0, Running::end);
}

#[test]
fn repeated_panics_stop_app_and_run_hook() {
    each(Scenario::PanicsAllOver, 101, Running::end);
}

#[test]
fn signal_stops_app_and_runs_hook() {
    each(Scenario::Waits, 0, |mut running| {
        running.wait_for("READY");
        running.signal(Signal::TERM);
        running.end()
    });
}

#[test]
fn reports_lost_lines_once_the_pipe_is_read() {
    let [mut command, _] = privileges::with_and_without(process::program("faults::unwritable::program"));
    command.env("SCENARIO", "Waits").env("EXECUTOR", "Partition").env("STDERR", "FullPipe");
    command.env("PUNCTUAL_TRACE", "/nowhere/trace_marker_raw").env("PUNCTUAL_REPORT", "1");
    let (stdio, reader) = Stderr::FullPipe.open();
    let mut running = process::start_with(command, process::LIMIT, stdio);
    running.wait_for("READY");
    let mut reader = reader.expect("a pipe has a reader");
    // Reads the pipe's whole contents, so that it has room again.
    let read = reader.read(&mut [0; 1 << 20]).expect("it is full");
    assert!(read > 0, "it is full");
    let reading = thread::spawn(move || std::io::read_to_string(&mut reader).expect("it is a text"));
    running.signal(Signal::TERM);
    assert_eq!(running.end().code, 0);
    let text = reading.join().expect("reading does not panic");
    assert!(text.contains("could not be written to standard error"), "{}", text.trim());
    assert!(!text.contains("punctual: jobs are not marked"), "that line is among those: {}", text.trim());
}
