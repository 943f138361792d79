//! Beginning a replay, feeding its inputs, and its verdict.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use punctual::background::warn;
use punctual::{Instant, RunningApp, VirtualThread};

use super::comparison::Comparison;
use super::source::Frame;
use crate::Sink;
use crate::recording::task_set;
use crate::replay::{self, REPLAY, is_replay};

/// The variable that names the file for the verdict.
const VERDICT: &str = "PUNCTUAL_REPLAY_VERDICT";
/// The time between the last message of a recording in real time and the end of the replay, in ns.
/// Jobs released before the end are completed, and this permits those that they spawn.
const TAIL_NS: u64 = 10_000_000;

/// The replay of this process.
pub(crate) struct Replay {
    shared: Arc<Shared>,
}

/// The state that the feeding thread and the comparison share.
pub(super) struct Shared {
    pub(super) path: PathBuf,
    pub(super) frame: Frame,
    verdict: Option<PathBuf>,
    pub(super) fed: Mutex<Fed>,
}

/// The inputs so far.
#[derive(Debug, Default)]
pub(super) struct Fed {
    pub(super) messages: u64,
    /// Findings, with their instants in ns.
    pub(super) findings: Vec<(u64, String)>,
}

/// Begins the replay that the environment requests, unless it has already begun.
pub(crate) fn begin() -> Result<Option<Replay>, String> {
    static BEGUN: AtomicBool = AtomicBool::new(false);
    if !is_replay() || BEGUN.swap(true, Ordering::Relaxed) {
        return Ok(None);
    }
    let verdict = std::env::var_os(VERDICT).map(PathBuf::from);
    let path = PathBuf::from(std::env::var_os(REPLAY).unwrap_or_default());
    let frame = Frame::read(&path).and_then(|frame| match RunningApp::current() {
        Some(app) if app.is_virtual() => Ok((frame, app)),
        Some(_) => Err("the app does not run in virtual time; run it by `Config::from_env`".to_owned()),
        None => Err("start the bridge in `init`, whose thread belongs to the app".to_owned()),
    });
    let (frame, app) = frame.inspect_err(|error| write(verdict.as_deref(), "invalid", error))?;
    write(verdict.as_deref(), "begun", "");
    if task_set(&app) != frame.task_set {
        warn(format_args!("replay: the task set has changed since the recording"));
    }
    if let Some(damage) = &frame.damage {
        let last = seconds(frame.last_ns);
        warn(format_args!("replay: the recording ends after {last} without its index: {damage}"));
    }
    let fed = Mutex::default();
    Ok(Some(Replay { shared: Arc::new(Shared { path, frame, verdict, fed }) }))
}

impl Replay {
    /// Returns the time since 1970 at the start of virtual time.
    pub(crate) fn offset_ns(&self) -> u64 {
        self.shared.frame.offset_ns
    }

    /// Starts to feed the inputs; returns the sink that compares the published messages.
    pub(crate) fn start(self) -> Result<Box<dyn Sink>, String> {
        let Self { shared } = self;
        let comparison = Comparison::new(Arc::clone(&shared));
        let fails = |error: &String| write(shared.verdict.as_deref(), "invalid", error);
        let comparison = comparison.inspect_err(fails)?;
        let theirs = Arc::clone(&shared);
        punctual::spawn_in_virtual_time("punctual-replay", move |thread| {
            // All inputs are registered, since `init` has ended.
            if let Err(error) = feed(&theirs, thread) {
                theirs.fed().findings.push((0, error));
            }
            punctual::shutdown();
        })
        .map_err(|error| error.to_string())
        .inspect_err(fails)?;
        Ok(Box::new(comparison))
    }
}

/// Passes every recorded input to the app at its instant, and waits for the end.
fn feed(shared: &Shared, thread: &mut VirtualThread) -> Result<(), String> {
    let frame = &shared.frame;
    let mut now = 0;
    for message in frame.inputs(&shared.path)? {
        let instant = frame.instant_ns(&message);
        // Inputs of the same instant follow each other without a job in between.
        if instant > now && !thread.sleep_until(Instant::from_ticks(instant)) {
            return Ok(());
        }
        now = instant;
        let topic = &frame.topics[message.topic].name;
        let Some(input) = replay::find_input(topic) else { continue };
        let fed = input.feed(&message.payload);
        let mut state = shared.fed();
        state.messages += 1;
        if let Err(reason) = fed {
            let finding =
                format!("{topic} at {}: the app rejects the recorded input: {reason}", seconds(now));
            state.findings.push((now, finding));
            // The first one suffices, and the following ones probably have the same reason.
            return Ok(());
        }
    }
    // In virtual time, everything has its recorded instant, so a replay is as long as its
    // recording.
    let tail = if frame.is_virtual { 1 } else { TAIL_NS };
    thread.sleep_until(Instant::from_ticks(frame.last_ns.saturating_add(tail)));
    Ok(())
}

impl Shared {
    pub(super) fn fed(&self) -> MutexGuard<'_, Fed> {
        self.fed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the replay with this verdict.
    pub(super) fn end(&self, verdict: &str, text: &str) {
        replay::clear_inputs();
        write(self.verdict.as_deref(), verdict, text);
    }
}

/// Writes the verdict, a word in the first line, and its text.
fn write(path: Option<&Path>, verdict: &str, text: &str) {
    match path {
        Some(path) => {
            if let Err(error) = punctual_files::write(path, format!("{verdict}\n{text}").as_bytes()) {
                warn(format_args!("replay: {}: {error}", path.display()));
            }
        }
        None => warn(format_args!("replay: {verdict}: {text}")),
    }
}

/// Formats an instant in ns.
pub(super) fn seconds(ns: u64) -> String {
    format!("{}.{:09} s", ns / 1_000_000_000, ns % 1_000_000_000)
}
