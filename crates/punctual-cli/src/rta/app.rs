//! Runs an app twice: to get its declared model, and to measure it.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use punctual_files::Directory;
use punctual_process::child::BoundedChild;

/// Environment variable: the app writes its model into this file, and ends.
pub(crate) const MODEL: &str = "PUNCTUAL_MODEL";
/// Environment variable: the app writes its measurements into this file when it ends.
pub(crate) const PROFILE: &str = "PUNCTUAL_PROFILE";

/// Time for an app to write its model, or to end after a request.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// Interval at which the end of the app is checked.
pub(crate) const GLANCE: Duration = Duration::from_millis(20);

/// Files written by the app, in a directory that is removed on drop.
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

/// Runs the command, which must not be empty, for `length`.
pub(super) fn run(command: &[OsString], length: Duration) -> Result<Files, String> {
    let files =
        files().map_err(|error| format!("cannot create a directory for what the app writes: {error}"))?;
    let name = command[0].display();
    declare(command, &files)?;
    let status = once(command, PROFILE, &files.profile, length)?;
    if !files.profile.exists() {
        return Err(format!(
            "{name} has written no profile ({}); it must end by itself or on SIGTERM, and run with \
             {PROFILE}=FILE",
            status.map_or("it did not end, and was killed".to_owned(), |status| status.to_string())
        ));
    }
    Ok(files)
}

/// Makes the app write its model.
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

/// Creates a directory that no other user can have prepared.
pub(crate) fn files() -> io::Result<Files> {
    let directory = Directory::temporary("punctual-rta-")?;
    let (model, profile) = (directory.path().join("model.json"), directory.path().join("profile.json"));
    Ok(Files { directory: Some(directory), model, profile })
}

/// Runs the app until it ends, and asks it to end after `length`. Returns `None` if it does not end
/// even then. Its output goes to standard error, so that standard output contains only the result.
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

/// Ends the app by SIGTERM, and by SIGKILL if it does not end; returns `None` then.
pub(crate) fn end(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let status = child.terminate(PATIENCE)?;
    Ok(status.filter(|status| status.signal() != Some(libc::SIGKILL)))
}
