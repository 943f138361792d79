//! Runs a program on a CPU that Linux gives up, alone or with a program on Linux that shares memory
//! with it.
//!
//! | what ends first | what happens to the other one |
//! |---|---|
//! | the program on the CPU, however | the program on Linux gets SIGTERM unless it ends by itself, and SIGKILL after the grace and 10 s |
//! | the program on Linux, however | the program on the CPU is asked to shut down, and ended after the grace |
//! | neither: a signal came | both, the program on Linux first |

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use punctual_isolate::cpus::Cpus;
use punctual_isolate::offline::{Device, DeviceError, Image, Options, State, check, give_up, hand_over};
use punctual_isolate::tree::Tree;
use punctual_process::child::BoundedChild;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::Place;
use crate::output::message;
use crate::parse::only_cpu;
use crate::status::FINDING;
use crate::trace;

/// Interval of looks at the programs: output, figures, jobs to be marked, ends.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Time without a heartbeat of the program on the CPU after which a message reports it.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(2);

/// Time that the program on Linux has to end by itself before it gets SIGTERM. It may be ending
/// already, because of the same Ctrl-C or of the other program's end, and a signal at the end of
/// its run would suppress its report.
const TERM_DELAY: Duration = Duration::from_millis(500);

/// The maximum length of the file of a program without an operating system.
const IMAGE_LIMIT: u64 = 256 << 20;

/// Time in addition to the grace after which the program on Linux is killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn run(
    tree: &Tree,
    cpus: &Cpus,
    options: Options,
    command: &[OsString],
    place: &mut Place,
) -> Result<u8, String> {
    let cpu = only_cpu(cpus)?;
    let [path, linux @ ..] = command else {
        return Err("--offline takes the file of a program".into());
    };
    check(tree, cpu).map_err(|error| format!("--cpus {cpu}: {error}"))?;
    let file = punctual_files::read(Path::new(path), IMAGE_LIMIT)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    let image = Image::read(&file).map_err(|error| format!("{}: {error}", path.display()))?;
    let end = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&end))
            .map_err(|error| format!("cannot handle signals: {error}"))?;
    }
    let mut device = Device::open().map_err(|error| error.to_string())?;
    let marker = marker();
    let _journal = give_up(cpu, &place.store, &mut place.settings).map_err(|error| error.to_string())?;
    let ended = run_both(&mut device, &end, (path, &image), linux, (cpu, marker, options));
    // Closed before the CPU comes back: an image that runs keeps it away.
    drop(device);
    let given_back = place.give_back();
    let code = ended?;
    match given_back? {
        0 => Ok(code),
        failed => Ok(failed.max(code)),
    }
}

/// Runs the programs until both have ended; returns the larger exit code.
fn run_both(
    device: &mut Device,
    end: &AtomicBool,
    (path, image): (&OsString, &Image),
    linux: &[OsString],
    (cpu, marker, options): (usize, Option<File>, Options),
) -> Result<u8, String> {
    // Now that the CPU is offline, since a program chooses its CPUs when it starts.
    let mut linux = LinuxProgram::start(device, linux)?;
    let ended = device
        .start(image, cpu, options)
        .map_err(|error| format!("{}: {error}", path.display()))
        .and_then(|()| device.show(marker).map_err(|error| error.to_string()))
        .and_then(|()| follow(device, end, &mut linux, options).map_err(|error| error.to_string()));
    let code_of_linux = linux.end(match ended {
        Ok(_) => options.grace + KILL_TIMEOUT,
        Err(_) => Duration::ZERO,
    });
    Ok(ended?.max(code_of_linux?))
}

/// The `trace_marker_raw` to mark jobs in, if `PUNCTUAL_TRACE` asks for marks as in any app.
fn marker() -> Option<File> {
    std::env::var_os(trace::MARKS).filter(|value| value != "0")?;
    let path = trace::marker();
    let opened = File::options().write(true).open(&path);
    opened.map_err(|error| message!("jobs are not marked in the trace: {}: {error}", path.display())).ok()
}

/// The program on Linux, if there is one.
struct LinuxProgram {
    process: Option<Child>,
    ended: Option<ExitStatus>,
    is_terminated: bool,
}

impl LinuxProgram {
    fn start(device: &Device, command: &[OsString]) -> Result<Self, String> {
        let Some((program, arguments)) = command.split_first() else {
            return Ok(Self { process: None, ended: None, is_terminated: false });
        };
        let mut command = Command::new(program);
        command.args(arguments);
        hand_over(device, &mut command);
        let process = command.spawn().map_err(|error| {
            format!("{}: {error}; a program on Linux follows the program for the CPU", program.display())
        })?;
        Ok(Self { process: Some(process), ended: None, is_terminated: false })
    }

    fn is_there(&self) -> bool {
        self.process.is_some()
    }

    fn has_ended(&mut self) -> bool {
        if let Some(process) = &mut self.process
            && self.ended.is_none()
        {
            // A failure means that the process is no child, and so has ended.
            self.ended = process.try_wait().unwrap_or_default();
        }
        self.ended.is_some()
    }

    /// Sends SIGTERM, once.
    fn terminate(&mut self) {
        if let Some(process) = self.process.as_ref().filter(|_| self.ended.is_none() && !self.is_terminated) {
            // The process has not been waited for, so the number is still valid.
            let _ = kill_process(Pid::from_child(process), Signal::TERM);
            self.is_terminated = true;
        }
    }

    /// Has it end within `limit`; returns its exit code.
    fn end(&mut self, limit: Duration) -> Result<u8, String> {
        let begun = Instant::now();
        if !self.is_there() {
            return Ok(0);
        }
        while !self.has_ended() && begun.elapsed() < limit {
            if begun.elapsed() > TERM_DELAY {
                self.terminate();
            }
            thread::sleep(CHECK_INTERVAL);
        }
        if !self.has_ended() {
            if let Some(process) = &mut self.process {
                self.ended = process.end_at_once().unwrap_or_default();
            }
            if limit > Duration::ZERO {
                message!(
                    "error: the program on Linux did not end within {} s, and was killed",
                    limit.as_secs()
                );
            }
        }
        let status = self.ended.ok_or("the program on Linux does not end at SIGKILL")?;
        Ok(match status.code() {
            Some(code) => u8::try_from(code).unwrap_or(FINDING),
            // A program without a handler ends so.
            None if self.is_terminated && status.signal() == Some(SIGTERM) => 0,
            None => {
                if limit > Duration::ZERO {
                    message!("error: the program on Linux: {status}");
                }
                FINDING
            }
        })
    }
}

impl Drop for LinuxProgram {
    /// Ends the process if the CPU could not be taken.
    fn drop(&mut self) {
        if let Some(process) = self.process.as_mut().filter(|_| self.ended.is_none()) {
            let _ = process.end_at_once();
        }
    }
}

/// Follows the program on the CPU until it has ended, and ends it when a signal comes or the
/// program on Linux has ended. Returns its exit code.
fn follow(
    device: &mut Device,
    end: &AtomicBool,
    linux: &mut LinuxProgram,
    options: Options,
) -> Result<u8, DeviceError> {
    let (mut beat, mut heard, mut is_silent) = (0, Instant::now(), false);
    let mut asked = None::<Instant>;
    let code = loop {
        match linux.is_there() {
            // The program on Linux has the bell.
            true => thread::sleep(CHECK_INTERVAL),
            false => _ = device.wait(CHECK_INTERVAL),
        }
        let linux_has_ended = linux.has_ended();
        let on = device.is_on()?;
        show(device);
        device.observe().iter().for_each(|lacking| message!("{lacking}"));
        match device.state() {
            State::Ended(code) if !on => break u8::try_from(code).unwrap_or(FINDING),
            State::Faulted(code) if !on => {
                message!("error: the program has failed; Linux takes its CPU back");
                break u8::try_from(code).unwrap_or(FINDING);
            }
            _ if !on => {
                message!("error: the CPU was turned off, but not by the program");
                break FINDING;
            }
            _ => {}
        }
        if device.beat() != beat {
            (beat, heard, is_silent) = (device.beat(), Instant::now(), false);
        } else if heard.elapsed() > SILENCE_TIMEOUT && !is_silent {
            message!(
                "the program masks interrupts for {} s: it misses its releases",
                SILENCE_TIMEOUT.as_secs()
            );
            is_silent = true;
        }
        let is_to_end = end.load(Ordering::Relaxed);
        if is_to_end && linux.is_there() {
            // The program on Linux goes first: it may use the other one until its end.
            let since = *asked.get_or_insert_with(Instant::now);
            if since.elapsed() > TERM_DELAY {
                linux.terminate();
            }
        }
        if linux_has_ended
            || is_to_end && asked.is_none_or(|asked| asked.elapsed() > TERM_DELAY + options.grace)
        {
            device.stop()?;
        }
    };
    device.end_observation().into_iter().for_each(|lacking| message!("{lacking}"));
    Ok(code)
}

fn show(device: &mut Device) {
    let mut text = Vec::new();
    let missed = device.read(&mut text);
    if missed > 0 {
        message!("{missed} bytes of the program's output were missed");
    }
    let mut stdout = io::stdout().lock();
    // Without a reader the program continues.
    let _ = stdout.write_all(&text).and_then(|()| stdout.flush());
}
