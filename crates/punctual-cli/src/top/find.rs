//! Finds running apps, by the anonymous files that they hold open.
//!
//! Any user can have a descriptor whose link looks like that of an app. A descriptor is therefore
//! first opened with `O_PATH`, which neither waits nor has an effect, and examined; only an
//! anonymous file is opened for reading. Its owner, which the kernel sets, is the user who created
//! the figures.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use punctual_core::metrics::NAME;
use punctual_report::escape::Printable;
use rustix::fs::{FileType, FsWord, Mode, OFlags, Stat, fstat, fstatfs};

/// File systems of anonymous files: of ordinary and of huge pages.
const TMPFS_MAGIC: FsWord = 0x0102_1994;
const HUGETLBFS_MAGIC: FsWord = 0x9584_58f6;

/// Maximum number of apps of one user, who can have any number of descriptors that look like one.
const MAX_APPS_OF_USER: usize = 256;

/// An app that exports its figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) process: u32,
    /// The name of its module.
    pub(crate) app: String,
    /// The user who created the figures.
    pub(crate) user: u32,
    /// The file, as a link of its process.
    pub(crate) path: PathBuf,
    /// Unique identity of the file.
    pub(crate) id: (u64, u64),
}

/// Relation of the caller to the user of an app, the closest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Relation {
    /// The caller.
    Own,
    /// The user who became root by `sudo`.
    Sudo,
    Other,
}

/// Running apps.
#[derive(Debug, Default)]
pub(crate) struct Apps {
    pub(crate) found: Vec<Found>,
    /// Number of processes of this user that may not be examined.
    pub(crate) closed: usize,
}

impl Apps {
    /// Examines every process of the machine, by `/proc`.
    pub(crate) fn running() -> Self {
        let mut apps = Self::default();
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let mut processes: Vec<u32> =
            processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        processes.sort_unstable();
        for process in processes {
            apps.probe(process);
        }
        apps.found.sort_by_key(Found::relation);
        apps
    }

    fn probe(&mut self, process: u32) {
        let directory = PathBuf::from(format!("/proc/{process}/fd"));
        let files = match fs::read_dir(&directory) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let owner = directory.parent().and_then(|of| fs::metadata(of).ok()).map(|of| of.uid());
                self.closed += usize::from(owner == Some(rustix::process::getuid().as_raw()));
                return;
            }
            // It has ended in the meantime.
            Err(_) => return,
        };
        for path in files.flatten().map(|entry| entry.path()) {
            let Some(app) = app_of(&path) else { continue };
            let Ok((_, stat)) = anonymous(&path) else { continue };
            self.add(Found { process, app, user: stat.st_uid, path, id: id(&stat) });
        }
    }

    fn add(&mut self, app: Found) {
        // The child of a fork has it, too, until it executes another program.
        let is_known = self.found.iter().any(|found| found.id == app.id);
        if !is_known && self.found.iter().filter(|found| found.user == app.user).count() < MAX_APPS_OF_USER {
            self.found.push(app);
        }
    }

    /// Returns those that `wanted` selects: by the name of an app or a program, or by process ID.
    /// The caller's own come first.
    pub(crate) fn named(&self, wanted: &str) -> Vec<&Found> {
        self.found.iter().filter(|found| found.is(wanted)).collect()
    }
}

impl Found {
    fn is(&self, wanted: &str) -> bool {
        self.app == wanted || self.process.to_string() == wanted || self.program().as_deref() == Some(wanted)
    }

    /// Returns the name of the program, if it can be read.
    fn program(&self) -> Option<String> {
        let program = fs::read_link(format!("/proc/{}/exe", self.process)).ok()?;
        let name = program.file_name()?.to_string_lossy().into_owned();
        Some(name.strip_suffix(" (deleted)").map_or(name.clone(), str::to_owned))
    }

    /// Returns the relation of the caller to its user.
    pub(crate) fn relation(&self) -> Relation {
        let caller = rustix::process::geteuid();
        let by_sudo = || std::env::var("SUDO_UID").ok()?.parse::<u32>().ok();
        match () {
            () if self.user == caller.as_raw() => Relation::Own,
            () if caller.is_root() && by_sudo() == Some(self.user) => Relation::Sudo,
            () => Relation::Other,
        }
    }

    /// Returns the name of its user, or the number of one without a name.
    pub(crate) fn user_name(&self) -> String {
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let name = users.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)?.parse() == Ok(self.user)).then(|| Printable(name).to_string())
        });
        name.unwrap_or_else(|| self.user.to_string())
    }

    /// Returns whether the app still exports this file.
    pub(crate) fn is_there(&self) -> bool {
        anonymous(&self.path).is_ok_and(|(_, stat)| id(&stat) == self.id)
    }

    /// Opens the file for reading, if the app still exports it.
    pub(crate) fn open(&self) -> io::Result<File> {
        let (file, stat) = anonymous(&self.path)?;
        if id(&stat) != self.id {
            return Err(io::ErrorKind::NotFound.into());
        }
        // By the examined descriptor: the process may have replaced its own.
        let descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(descriptor, flags, Mode::empty())?.into())
    }
}

fn id(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// Opens a descriptor of another process without reading or waiting, if it is an anonymous file or
/// a file in memory.
fn anonymous(link: &Path) -> io::Result<(OwnedFd, Stat)> {
    let file = rustix::fs::open(link, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let stat = fstat(&file)?;
    let is_regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if is_regular && matches!(fstatfs(&file)?.f_type, TMPFS_MAGIC | HUGETLBFS_MAGIC) {
        Ok((file, stat))
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Returns the name of the app whose memory this link refers to, if any.
fn app_of(link: &Path) -> Option<String> {
    let target = fs::read_link(link).ok()?;
    let name = target.to_str()?.strip_prefix("/memfd:")?.strip_prefix(NAME)?;
    Some(Printable(name.strip_suffix(" (deleted)").unwrap_or(name)).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_apps_of_each_user() {
        let app = |user, number| Found {
            process: 7,
            app: "app".into(),
            user,
            path: PathBuf::new(),
            id: (0, number),
        };
        let mut apps = Apps::default();
        (0..1000).for_each(|number| apps.add(app(1, number)));
        (1000..1003).for_each(|number| apps.add(app(2, number)));
        apps.add(app(2, 1000));
        let of = |user| apps.found.iter().filter(|found| found.user == user).count();
        assert_eq!((of(1), of(2)), (MAX_APPS_OF_USER, 3));
    }
}
