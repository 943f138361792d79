//! A flight recorder for a supervised app. The kernel keeps the newest events of its tracer in
//! memory, where they are neither written nor read; after an incident, the contents are written to
//! a file.
//!
//! An ordinary thread starts and ends recordings: each takes a while, in which the supervisor has
//! to watch the app.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::JoinHandle;
use std::time::Duration;

use punctual_files::Directory;
use punctual_report::format::format_counted;
use punctual_trace::record::{Config, Recording};
use punctual_trace::write::dat;

use crate::output::message;

/// Time recorded after an incident, to include the app's reaction.
const AFTERWARDS: Duration = Duration::from_millis(100);
/// Maximum time that the start of an app waits for the recording.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of files. Each contains the buffers of all CPUs, 8 MiB each.
const MAX_FILES: u32 = 8;

/// The recorder. Ends when dropped.
#[derive(Debug)]
pub(super) struct Flight {
    asks: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
enum Request {
    /// Record, and reply when recording has started, or has failed.
    Begin(Sender<()>),
    /// Write the current contents to this file.
    Keep(PathBuf),
}

impl Flight {
    /// Starts the thread, which records nothing yet. Files are prepared in `directory`. The
    /// recorder runs only on the CPUs `housekeeping`, if there are any.
    pub(super) fn new(directory: &Path, housekeeping: Vec<u32>) -> io::Result<Self> {
        let place = directory.join(format!("punctual-supervise-{}.trace", std::process::id()));
        let config = Config { newest: true, housekeeping, ..Config::default() };
        let (asks, asked) = mpsc::channel();
        let recorder = Recorder { config, place, recording: None, written: 0 };
        let thread =
            std::thread::Builder::new().name("punctual-flight".into()).spawn(move || recorder.run(&asked))?;
        Ok(Self { asks: Some(asks), thread: Some(thread) })
    }

    /// Ensures that an app started after this is recorded, as soon as possible.
    pub(super) fn begin(&self) {
        let (answer, answered) = mpsc::channel();
        self.ask(Request::Begin(answer));
        // The app need not wait for a recorder that is busy with an earlier incident.
        if answered.recv_timeout(WRITE_TIMEOUT) == Err(mpsc::RecvTimeoutError::Timeout) {
            message!("supervise: the app starts before its trace does: the recorder is busy");
        }
    }

    /// Writes the recording next to the stack in `snapshot`.
    pub(super) fn keep(&self, snapshot: &Path) {
        self.ask(Request::Keep(snapshot.with_extension("dat")));
    }

    fn ask(&self, ask: Request) {
        if let Some(asks) = &self.asks {
            // Without its thread, which has reported the reason, there is no trace.
            let _ = asks.send(ask);
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        drop(self.asks.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// State of the thread.
struct Recorder {
    config: Config,
    /// The capture directory.
    place: PathBuf,
    recording: Option<Recording>,
    written: u32,
}

impl Recorder {
    fn run(mut self, asked: &Receiver<Request>) {
        while let Ok(ask) = asked.recv() {
            match ask {
                Request::Begin(answer) => {
                    self.begin();
                    drop(answer);
                }
                Request::Keep(_) if self.recording.is_none() => {}
                Request::Keep(file) => {
                    std::thread::sleep(AFTERWARDS);
                    self.keep(&file);
                    // The app may continue. If it does not, there is no further request, or one for
                    // the next start.
                    if !matches!(asked.try_recv(), Err(TryRecvError::Disconnected)) {
                        self.begin();
                    }
                }
            }
        }
    }

    /// Starts recording, unless it is running or there are enough files.
    fn begin(&mut self) {
        if self.recording.is_some() || self.written == MAX_FILES {
            return;
        }
        match Recording::start(self.config.clone(), &self.place) {
            Ok(recording) => self.recording = Some(recording),
            Err(error) => {
                message!("supervise: no trace is kept: {error}");
                self.clear();
            }
        }
    }

    /// Ends the recording and writes it.
    fn keep(&mut self, file: &Path) {
        let Some(recording) = self.recording.take() else { return };
        match self.write(recording, file) {
            Ok(lost) => {
                message!("supervise: the trace until then: punctual trace report {}", file.display());
                if lost > 0 {
                    message!("supervise: {} are missing there", format_counted(lost, "event"));
                }
                self.written += 1;
                if self.written == MAX_FILES {
                    message!("supervise: no more traces are written, there are {MAX_FILES}");
                }
            }
            Err(why) => message!("supervise: no trace was written to {}: {why}", file.display()),
        }
        self.clear();
    }

    /// Returns the number of lost events.
    fn write(&self, recording: Recording, file: &Path) -> Result<u64, String> {
        let summary = recording.stop().map_err(|error| error.to_string())?;
        if fs::symlink_metadata(file).is_ok() {
            return Err("it exists, and is not overwritten".into());
        }
        dat::finish(&self.place, file).map_err(|error| error.to_string())?;
        Ok(summary.losses.iter().map(|cpu| cpu.lost).sum())
    }

    /// Removes its directory, if it still exists.
    fn clear(&self) {
        let _ = Directory::open(&self.place).and_then(Directory::remove);
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if self.recording.take().is_some() {
            self.clear();
        }
    }
}
