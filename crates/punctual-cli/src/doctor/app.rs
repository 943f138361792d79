//! Runs an app to determine its declarations, the priorities of its threads, and the devices it
//! opens.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use punctual_isolate::doctor::App;

use crate::app;

/// Makes the app write its model, and starts it. Returns when it has real-time threads, or the time
/// to start them is over.
pub(super) fn start(command: &[OsString]) -> Result<(app::App, App), String> {
    let files = app::files()
        .map_err(|error| format!("cannot create a directory for what the app writes: {error}"))?;
    app::declare(command, &files)?;
    let declared = declared(&files.model, command)?;
    let mut running = app::App::start(command, &[])?;
    running.settle();
    let process = running.id();
    Ok((running, observed(declared, process)))
}

/// Reads the model that an app has written.
pub(crate) fn declared(model: &Path, command: &[OsString]) -> Result<App, String> {
    let wrong = |error: String| format!("the model of {}: {error}", command[0].display());
    let model = punctual_files::read_text(model).map_err(|error| wrong(error.to_string()))?;
    App::of_model(&model).map_err(wrong)
}

/// Adds what a running process shows.
pub(crate) fn observed(app: App, process: u32) -> App {
    App { process: Some(process), devices: devices(process), ..app }
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
