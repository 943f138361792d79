//! Finding running apps: by the anonymous files that they hold open.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use punctual_core::metrics::NAME;
use punctual_report::escape::Printable;

/// An app that shows its figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) process: u32,
    /// The name of its module.
    pub(crate) app: String,
    /// The file, as a link of its process.
    pub(crate) path: PathBuf,
    /// What tells the file from all others.
    pub(crate) id: (u64, u64),
}

/// What there is.
#[derive(Debug, Default)]
pub(crate) struct Apps {
    pub(crate) found: Vec<Found>,
    /// Processes of this user that may not be looked into.
    pub(crate) closed: usize,
}

impl Apps {
    /// Looks at every process of the machine, by its `/proc`.
    pub(crate) fn running() -> Self {
        let mut apps = Self::default();
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let mut processes: Vec<u32> =
            processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        processes.sort_unstable();
        for process in processes {
            apps.look(process);
        }
        apps
    }

    fn look(&mut self, process: u32) {
        let directory = PathBuf::from(format!("/proc/{process}/fd"));
        let files = match fs::read_dir(&directory) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let owner = directory.parent().and_then(|of| fs::metadata(of).ok()).map(|of| of.uid());
                self.closed += usize::from(owner == Some(rustix::process::getuid().as_raw()));
                return;
            }
            // It has ended meanwhile.
            Err(_) => return,
        };
        for path in files.flatten().map(|entry| entry.path()) {
            let Some(app) = app_of(&path) else { continue };
            let Ok(metadata) = fs::metadata(&path) else { continue };
            let id = id(&metadata);
            // The child of a fork has it, too, until it becomes another program.
            if self.found.iter().all(|found| found.id != id) {
                self.found.push(Found { process, app, path, id });
            }
        }
    }

    /// Those whom `wanted` means: an app's name, a program's or a process.
    pub(crate) fn named(&self, wanted: &str) -> Vec<&Found> {
        self.found.iter().filter(|found| found.is(wanted)).collect()
    }
}

impl Found {
    fn is(&self, wanted: &str) -> bool {
        self.app == wanted || self.process.to_string() == wanted || self.program().as_deref() == Some(wanted)
    }

    /// The name of the program, if it can be read.
    fn program(&self) -> Option<String> {
        let program = fs::read_link(format!("/proc/{}/exe", self.process)).ok()?;
        let name = program.file_name()?.to_string_lossy().into_owned();
        Some(name.strip_suffix(" (deleted)").map_or(name.clone(), str::to_owned))
    }

    /// Whether the app still shows this file.
    pub(crate) fn is_there(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|metadata| id(&metadata) == self.id)
    }
}

fn id(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// The name of the app whose memory this link leads to, if it does.
fn app_of(link: &Path) -> Option<String> {
    let target = fs::read_link(link).ok()?;
    let name = target.to_str()?.strip_prefix("/memfd:")?.strip_prefix(NAME)?;
    Some(Printable(name.strip_suffix(" (deleted)").unwrap_or(name)).to_string())
}
