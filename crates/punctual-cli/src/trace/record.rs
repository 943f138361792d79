//! `punctual trace record`: records a trace.dat.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use punctual_files::{Directory, NewFile};
use punctual_report::format::{format_counted, format_nanos};
use punctual_trace::record::{self, Buffers, Config, Filter, RecordError, Recorded, Recording};
use punctual_trace::write::{WriteError, dat};
use signal_hook::consts::{SIGKILL, SIGTERM};

use super::args::{Record, Source};
use super::child::{self, HeldChild, Running};
use super::signals::{Notice, Signals};
use super::{FAILED, Failure};
use crate::isolate::run::resolve;
use crate::output::{message, unwritable};
use crate::parse::numbers;

/// Interval at which the recording is checked for failure.
const TICK: Duration = Duration::from_millis(200);

impl Source {
    /// Returns the configuration of the recorder, including the child if there is one.
    pub(crate) fn config(&self, child: Option<u32>) -> Config {
        Config {
            groups: self.events.0.clone(),
            tracepoints: self.events.1.clone(),
            filter: Filter {
                processes: self.pids.iter().copied().chain(child).collect(),
                names: Vec::new(),
                priorities: self.priorities.as_ref().map(|range| range.0.clone()),
            },
            narrow: self.narrow,
            buffer_kib: self.buffer_kib,
            cpus: self.cpus.as_ref().map_or(Vec::new(), numbers),
            ..Config::default()
        }
    }

    /// Creates the child that waits to execute the command, if there is one, and the buffers for
    /// its marks, whose location it has to know. Its output goes to `output`.
    pub(crate) fn hold(&self, output: Stdio) -> Result<Option<(HeldChild, Buffers)>, Failure> {
        if self.command.is_empty() {
            return Ok(None);
        }
        // First, so that a missing command is the same error with and without the right to record.
        resolve(&self.command[0]).map_err(Failure::usage)?;
        let buffers = Buffers::new().map_err(|error| refused(&error))?;
        Ok(Some((HeldChild::new(&self.command, output, &buffers.for_apps())?, buffers)))
    }
}

pub(crate) fn run(arguments: &Record) -> Result<u8, Failure> {
    record(arguments, Stdio::inherit(), None)
}

/// Records, with the command's output going to `command_output`. Calls `running` with the process
/// of the command once it has started, and then prints no summary, because the caller reads the
/// file.
pub(crate) fn record(
    arguments: &Record,
    command_output: Stdio,
    running: Option<&mut dyn FnMut(u32)>,
) -> Result<u8, Failure> {
    let Record { output, source, tasks, newest, clock } = arguments;
    let directory = beside(output);
    NewFile::create(output).map_err(|error| Failure::usage(unwritable("--output", output, &error)))?;
    if fs::symlink_metadata(&directory).is_ok() {
        return Err(Failure::usage(format!(
            "{directory} already exists, from an unfinished recording; finish it with `punctual trace \
             convert {directory} --remove -o FILE`, \
             or remove it, or choose another --output",
            directory = directory.display()
        )));
    }
    let (held, buffers) = source.hold(command_output)?.unzip();
    let command = held.as_ref().map(HeldChild::pid);
    record::drop_real_time_policy(&[]);
    let signals = Signals::listen()?;
    let mut config = Config { newest: *newest, clock: clock.clone(), ..source.config(command) };
    config.filter.names.clone_from(tasks);
    let started = match buffers {
        Some(buffers) => Recording::start_in(buffers, config, &directory),
        None => Recording::start(config, &directory),
    };
    let recording = match started {
        Ok(recording) => recording,
        Err(error) => {
            // It contains event formats at most.
            remove(&directory);
            return Err(refused(&error));
        }
    };
    let start = Instant::now();
    let mut child = match held.map(HeldChild::go).transpose() {
        Ok(child) => child,
        Err(error) => {
            drop(recording);
            remove(&directory);
            return Err(Failure::usage(error));
        }
    };
    if child.is_none() {
        record::refused_marks().iter().for_each(|warning| message!("warning: {warning}"));
        let until = if source.duration.is_some() { "" } else { ", until Ctrl-C" };
        message!("recording{until}");
    }
    let is_silent = running.is_some();
    if let (Some(running), Some(process)) = (running, command) {
        crate::app::settle(process, || child.as_mut().is_some_and(|child| child.ended().is_some()));
        running(process);
    }
    let end = source.duration.and_then(|duration| start.checked_add(duration));
    let why = wait(&signals, child.as_mut(), end, || recording.failed());
    let took = start.elapsed();

    let saved = save(recording, &directory, output).map(|summary| {
        if !is_silent {
            report(&summary, output, *newest, took);
        }
    });
    if let Err(error) = &saved {
        message!("error: {}", error.message);
    }
    let status = child.map(|mut child| finish(&signals, &mut child, why));
    Ok(if saved.is_err() { FAILED } else { status.unwrap_or(0) })
}

/// Converts an error: a PID, CPU or clock that does not exist is a usage error; anything else is a
/// system error.
pub(crate) fn refused(error: &RecordError) -> Failure {
    match error {
        RecordError::Clock { .. }
        | RecordError::NoTime { .. }
        | RecordError::Tracepoint { .. }
        | RecordError::UnknownProcess { .. }
        | RecordError::Filter { .. }
        | RecordError::Cpu { .. } => Failure::usage(error.to_string()),
        error => error.into(),
    }
}

/// Returns the directory for pages until the file is complete.
fn beside(output: &Path) -> PathBuf {
    let mut name = OsString::from(output);
    name.push(".raw");
    name.into()
}

/// Removes a recording without events.
fn remove(directory: &Path) {
    // Another user may have replaced it by another directory, which this command must not remove.
    let _ = Directory::open(directory).and_then(Directory::remove);
}

/// Reason why a recording stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// A signal requested it.
    Asked,
    /// Its time is over, or the awaited event has occurred.
    Over,
    /// The command has ended.
    Ended,
    /// It cannot continue.
    Failed,
    /// The output has no reader anymore.
    Unread,
}

/// Waits for a reason to stop. A first signal goes to the command, if there is one; a second one
/// stops the recording.
fn wait(
    signals: &Signals,
    mut child: Option<&mut Running>,
    end: Option<Instant>,
    failed: impl Fn() -> bool,
) -> StopReason {
    let mut asked = false;
    loop {
        if child.as_mut().is_some_and(|child| child.ended().is_some()) {
            return StopReason::Ended;
        }
        if failed() {
            return StopReason::Failed;
        }
        let left = end.map_or(TICK, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return StopReason::Over;
        }
        if let Some(Notice::End { signal, from_terminal }) = signals.wait(left.min(TICK)) {
            match &mut child {
                Some(child) if !asked => {
                    if !from_terminal {
                        child.signal(signal);
                    }
                }
                _ => return StopReason::Asked,
            }
            asked = true;
        }
    }
}

/// Time for the command to end after SIGTERM, and then after SIGKILL.
const END_TIMEOUT: Duration = Duration::from_secs(20);

/// Ends the command after the recording; returns its status. Ending it because nothing more is
/// recorded, or because there is no reader, is not a failure of the command.
pub(crate) fn finish(signals: &Signals, child: &mut Running, why: StopReason) -> u8 {
    let mut asked = None;
    match why {
        StopReason::Over | StopReason::Asked | StopReason::Unread => {
            child.signal(SIGTERM);
            asked = Some(Instant::now());
        }
        StopReason::Failed => {
            message!("warning: the command continues without being recorded; Ctrl-C ends it")
        }
        StopReason::Ended => {}
    }
    loop {
        if let Some(status) = child.ended() {
            return match why {
                StopReason::Unread => 0,
                StopReason::Over if child.was_ended() => 0,
                _ => child::code(status),
            };
        }
        let is_interrupted = matches!(signals.wait(TICK), Some(Notice::End { .. }));
        if is_interrupted {
            asked.get_or_insert_with(Instant::now);
        }
        let waited = asked.map_or(Duration::ZERO, |asked: Instant| asked.elapsed());
        if is_interrupted || waited > END_TIMEOUT {
            child.signal(SIGKILL);
        }
        if waited > 2 * END_TIMEOUT {
            message!("warning: the command does not end at SIGKILL; it is left behind");
            return 1;
        }
    }
}

/// Writes the file.
fn save(recording: Recording, directory: &Path, output: &Path) -> Result<Recorded, Failure> {
    let summary = recording.stop()?;
    match dat::finish(directory, output) {
        Ok(()) => {}
        Err(error @ WriteError::Left { .. }) => message!("warning: {error}"),
        Err(error) => return Err(error.into()),
    }
    Ok(summary)
}

fn report(summary: &Recorded, output: &Path, newest: bool, took: Duration) {
    let events = summary.losses.iter().map(|cpu| cpu.read).sum();
    let bytes = fs::metadata(output).map_or(summary.bytes, |file| file.len());
    message!(
        "{}: {}{} of {} in {}, {:.1} MB",
        output.display(),
        // Some of the oldest are dropped, so that all CPUs begin at the same time.
        if newest { "the newest of " } else { "" },
        format_counted(events, "event"),
        format_counted(summary.losses.len() as u64, "CPU"),
        format_nanos(took.as_nanos() as f64),
        bytes as f64 / 1e6
    );
    for cpu in summary.losses.iter().filter(|cpu| cpu.lost > 0) {
        message!(
            "LOST: {} on CPU {}; the jobs affected are left out of the statistics. Record with a larger --buffer, \
             fewer --events or --narrow",
            format_counted(cpu.lost, "event"),
            cpu.cpu
        );
    }
    for absent in &summary.absent {
        message!("missing: {absent}");
    }
    message!("print its report: punctual trace report {}", output.display());
}
