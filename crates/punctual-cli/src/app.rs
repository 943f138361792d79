//! Runs Punctual apps to get their declared models, profiles, and open devices.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

use punctual_files::Directory;
use punctual_isolate::doctor;
use punctual_isolate::facts::real_time_threads;
use punctual_process::child::BoundedChild;

use crate::isolate::run::{not_executed, resolve};

/// Environment variable: the app writes its model into this file, and ends.
pub(crate) const MODEL: &str = "PUNCTUAL_MODEL";
/// Environment variable: the app writes its measurements into this file when it ends.
const PROFILE: &str = "PUNCTUAL_PROFILE";

/// Time for an app to write its model, or to end after a request.
const END_TIMEOUT: Duration = Duration::from_secs(20);
/// Time for an app to start its real-time threads.
const START_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval at which the state of the app is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Files written by the app, in a directory that is removed on drop.
pub(crate) struct Files {
    directory: Option<Directory>,
    pub(crate) model: PathBuf,
    pub(crate) profile: PathBuf,
    /// Recording of a program that writes neither.
    pub(crate) trace: PathBuf,
    /// Result of a replay.
    pub(crate) verdict: PathBuf,
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = self.directory.take().map(Directory::remove);
    }
}

/// Creates a directory that no other user can have prepared.
pub(crate) fn files() -> io::Result<Files> {
    let directory = Directory::temporary("punctual-app-")?;
    let path = |name: &str| directory.path().join(name);
    let (model, profile, trace) = (path("model.json"), path("profile.json"), path("trace.dat"));
    let verdict = path("verdict");
    Ok(Files { directory: Some(directory), model, profile, trace, verdict })
}

/// Runs the command, which must not be empty, and calls `running` with its process once it has
/// started, `length` before its end.
pub(crate) fn run(
    command: &[OsString],
    length: Duration,
    running: impl FnOnce(u32),
) -> Result<Files, String> {
    let files =
        files().map_err(|error| format!("cannot create a directory for what the app writes: {error}"))?;
    declare(command, &files)?;
    let mut app = App::start(command, &[(PROFILE, files.profile.as_os_str())], Stdio::inherit())?;
    app.settle();
    running(app.id());
    let status = app.end_after(length)?;
    if !files.profile.exists() {
        // The runtime handles SIGTERM from its start on.
        if status.is_some_and(|status| status.signal() == Some(libc::SIGTERM)) {
            let app = command[0].display();
            return Err(format!("{app} had not started its tasks within --duration; extend it"));
        }
        return Err(format!(
            "{} has written no profile ({}); it must end by itself or on SIGTERM, and run with \
             {PROFILE}=FILE",
            command[0].display(),
            status.map_or("it did not end, and was killed".to_owned(), |status| status.to_string())
        ));
    }
    Ok(files)
}

/// Makes the app write its model.
pub(crate) fn declare(command: &[OsString], files: &Files) -> Result<(), String> {
    let mut app = App::start(command, &[(MODEL, files.model.as_os_str())], Stdio::null())?;
    let status = app.end_after(END_TIMEOUT)?;
    if !files.model.exists() {
        return Err(format!(
            "{} has written no model ({}); give an app of Punctual, which writes one with {MODEL}=FILE",
            command[0].display(),
            status.map_or("it did not end".to_owned(), |status| status.to_string())
        ));
    }
    Ok(())
}

/// Waits until a process has real-time threads or has ended, or until the time to start them is
/// over.
pub(crate) fn settle(process: u32, mut has_ended: impl FnMut() -> bool) {
    let begun = Instant::now();
    while begun.elapsed() < START_TIMEOUT && real_time_threads(process) == 0 && !has_ended() {
        std::thread::sleep(CHECK_INTERVAL);
    }
}

/// A running app, ended on drop.
pub(crate) struct App {
    child: Child,
    name: String,
}

impl App {
    /// Starts the command, which must not be empty, with these environment variables and this
    /// input. Its output goes to standard error, so that standard output contains only the result.
    pub(crate) fn start(
        command: &[OsString],
        variables: &[(&str, &OsStr)],
        input: Stdio,
    ) -> Result<Self, String> {
        resolve(&command[0])?;
        let name = command[0].display().to_string();
        let mut app = Command::new(&command[0]);
        app.args(&command[1..]).env_remove(MODEL).env_remove(PROFILE).envs(variables.iter().copied());
        app.stdin(input).stdout(Stdio::from(io::stderr()));
        match app.spawn() {
            Ok(child) => Ok(Self { child, name }),
            Err(error) => Err(not_executed(&command[0], &error)),
        }
    }

    /// Returns its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has real-time threads or has ended, or until the time to start them is over.
    pub(crate) fn settle(&mut self) {
        settle(self.child.id(), || !matches!(self.child.try_wait(), Ok(None)));
    }

    /// Waits for its end, and ends it by SIGTERM after `length`. Returns `None` if it does not end
    /// even then, and had to be killed.
    pub(crate) fn end_after(&mut self, length: Duration) -> Result<Option<ExitStatus>, String> {
        let failed = |error: io::Error| format!("{}: {error}", self.name);
        if let Some(status) = self.child.wait_within(length).map_err(failed)? {
            return Ok(Some(status));
        }
        let status = self.child.terminate(END_TIMEOUT).map_err(failed)?;
        Ok(status.filter(|status| status.signal() != Some(libc::SIGKILL)))
    }
}

impl Drop for App {
    fn drop(&mut self) {
        // Also after a failure in between. A process that was waited for is left alone.
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.terminate(END_TIMEOUT);
        }
    }
}

/// Makes the app write its model, and starts it. Returns when it has real-time threads, or the time
/// to start them is over.
pub(crate) fn start_declared(command: &[OsString]) -> Result<(App, doctor::App), String> {
    let files =
        files().map_err(|error| format!("cannot create a directory for what the app writes: {error}"))?;
    declare(command, &files)?;
    let declared = declared(&files.model, command)?;
    let mut running = App::start(command, &[], Stdio::inherit())?;
    running.settle();
    let process = running.id();
    Ok((running, observed(declared, process)))
}

/// Reads the model that an app has written.
pub(crate) fn declared(model: &Path, command: &[OsString]) -> Result<doctor::App, String> {
    let wrong = |error: String| format!("the model of {}: {error}", command[0].display());
    let model = punctual_files::read_text(model).map_err(|error| wrong(error.to_string()))?;
    doctor::App::of_model(&model).map_err(wrong)
}

/// Adds what a running process shows.
pub(crate) fn observed(app: doctor::App, process: u32) -> doctor::App {
    doctor::App { process: Some(process), devices: devices(process), ..app }
}

/// Returns the devices that a process has open.
fn devices(process: u32) -> Vec<String> {
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let targets = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
    let mut devices: Vec<String> = targets
        .filter_map(|target| target.into_os_string().into_string().ok())
        .filter(|path| path.starts_with("/dev/") && path != "/dev/null" && !path.starts_with("/dev/pts/"))
        .collect();
    devices.sort();
    devices.dedup();
    devices
}
