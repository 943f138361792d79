//! Runs an app twice: to have its declared model, and to measure it.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use punctual_files::Directory;
use punctual_process::child::BoundedChild;

/// The app writes what it declares into this file, and ends.
pub(crate) const MODEL: &str = "PUNCTUAL_MODEL";
/// The app writes what it has measured into this file when it ends.
pub(crate) const PROFILE: &str = "PUNCTUAL_PROFILE";

/// How long an app may take to write its model, or to end when it has been asked to.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// How often to look whether it has ended.
pub(crate) const GLANCE: Duration = Duration::from_millis(20);

/// The files that the app has written, in a directory that goes with this.
pub(crate) struct Files {
    directory: Option<Directory>,
    pub(crate) model: PathBuf,
    pub(super) profile: PathBuf,
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = self.directory.take().map(Directory::remove);
    }
}

/// Runs the command, which must not be empty, for that long.
pub(super) fn run(command: &[OsString], length: Duration) -> Result<Files, String> {
    let files =
        files().map_err(|error| format!("cannot create a directory for what the app writes: {error}"))?;
    let name = command[0].display();
    declare(command, &files)?;
    let status = once(command, PROFILE, &files.profile, length)?;
    if !files.profile.exists() {
        return Err(format!(
            "{name} has written no profile ({}); it has to end by itself or at SIGTERM, and to run with {PROFILE}=FILE",
            status.map_or("it did not end, and was killed".to_owned(), |status| status.to_string())
        ));
    }
    Ok(files)
}

/// Has the app write what it declares.
pub(crate) fn declare(command: &[OsString], files: &Files) -> Result<(), String> {
    let status = once(command, MODEL, &files.model, PATIENCE)?;
    if !files.model.exists() {
        return Err(format!(
            "{} has written no model ({}); is it an app of Punctual, and does it run with {MODEL}=FILE?",
            command[0].display(),
            status.map_or("it did not end".to_owned(), |status| status.to_string())
        ));
    }
    Ok(())
}

/// A directory that nobody else can have prepared.
pub(crate) fn files() -> io::Result<Files> {
    let directory = Directory::temporary("punctual-rta-")?;
    let (model, profile) = (directory.path().join("model.json"), directory.path().join("profile.json"));
    Ok(Files { directory: Some(directory), model, profile })
}

/// Runs the app until it ends, but asks it to after `length`. None if it does not even then. Its output goes to standard error, so
/// that standard output has the result only.
fn once(
    command: &[OsString],
    key: &str,
    file: &Path,
    length: Duration,
) -> Result<Option<ExitStatus>, String> {
    let name = command[0].display();
    let mut app = Command::new(&command[0]);
    app.args(&command[1..]).env_remove(MODEL).env_remove(PROFILE).env(key, file);
    app.stdin(Stdio::null()).stdout(Stdio::from(io::stderr()));
    let mut child =
        app.spawn().map_err(|error| format!("{name}: {error}; give a command that can be executed"))?;
    let failed = |error: io::Error| format!("{name}: {error}");
    if let Some(status) = child.wait_within(length).map_err(failed)? {
        return Ok(Some(status));
    }
    end(&mut child).map_err(failed)
}

/// Ends the app by SIGTERM, and by SIGKILL if it does not end at that; returns `None` then.
pub(crate) fn end(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let status = child.terminate(PATIENCE)?;
    Ok(status.filter(|status| status.signal() != Some(libc::SIGKILL)))
}
