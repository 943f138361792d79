//! Runs an app to determine its declarations, the priorities of its threads, and the devices it
//! opens.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use punctual_isolate::doctor::App;
use punctual_isolate::facts::real_time_threads;

use crate::rta::app::{GLANCE, MODEL, PROFILE, declare, end, files};

/// Time for an app to start its real-time threads.
const START: Duration = Duration::from_secs(1);

/// A running app, until dropped.
pub(super) struct Running {
    child: Child,
    app: App,
}

/// Starts the app, and waits until it has real-time threads, or until the time to start them is
/// over.
pub(super) fn start(command: &[OsString]) -> Result<Running, String> {
    let name = command[0].display();
    let files =
        files().map_err(|error| format!("cannot create a directory for what the app writes: {error}"))?;
    declare(command, &files)?;
    let model = fs::read_to_string(&files.model).map_err(|error| format!("the model of {name}: {error}"))?;
    let app = App::of_model(&model).map_err(|error| format!("the model of {name}: {error}"))?;
    let mut process = Command::new(&command[0]);
    process.args(&command[1..]).env_remove(MODEL).env_remove(PROFILE);
    // Standard output contains only the report.
    process.stdin(Stdio::null()).stdout(Stdio::from(io::stderr()));
    let child = process.spawn().map_err(|error| format!("{name}: {error}"))?;
    let mut running = Running { child, app };
    let begun = Instant::now();
    while begun.elapsed() < START && real_time_threads(running.child.id()) == 0 {
        if running.child.try_wait().map_err(|error| format!("{name}: {error}"))?.is_some() {
            break;
        }
        std::thread::sleep(GLANCE);
    }
    let process = running.child.id();
    running.app.process = Some(process);
    running.app.devices = devices(process);
    Ok(running)
}

impl Running {
    /// Ends the app, and returns the observations.
    pub(super) fn end(&mut self) -> App {
        let _ = end(&mut self.child);
        self.app.clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Also after a failure in between. A process that was waited for is left alone.
        if let Ok(None) = self.child.try_wait() {
            let _ = end(&mut self.child);
        }
    }
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
