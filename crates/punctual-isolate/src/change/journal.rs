//! A record of changes, in a file that outlives the process that makes them.
//!
//! The first line names the boot, the owner and the purpose. Each change has two lines: one written
//! before the change, and one written after it with the value that the kernel stored, which may
//! differ from the value that was written. If the second line is missing, the process was killed in
//! between and the stored value is unknown; undoing then restores the old value without comparing.
//! The owner holds a lock on the file while it runs. The file is not flushed to a disk: a crash of
//! the machine resets the settings as well.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use punctual_files::Directory;
use serde::{Deserialize, Serialize};

use super::{Change, Setting, Settings};
use crate::tree::Tree;

const SCHEMA: &str = "punctual-journal/1";
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
const ENDING: &str = "journal";
/// The maximum wait for a process that changes or undoes settings: taking a CPU offline is the
/// slowest change, and takes seconds at most.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// The directory of the journals.
#[derive(Debug, Clone)]
pub struct Store {
    directory: PathBuf,
    lock_timeout: Duration,
}

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    schema: String,
    boot: String,
    owner: Owner,
    purpose: String,
    keep: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    setting: Setting,
    old: String,
    new: String,
    /// `true` if the kernel stores `new`. Otherwise a write is in flight, and the setting may have
    /// any value.
    #[serde(default)]
    stored: bool,
}

/// A process that has changed settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its PID, in its own PID namespace.
    pub process: u32,
    /// Its name.
    pub name: String,
}

impl Owner {
    /// Returns the calling process.
    #[must_use]
    pub fn this() -> Self {
        Self { process: std::process::id(), name: Tree::system().text("/proc/self/comm").unwrap_or_default() }
    }
}

/// The reason a journal cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The journal cannot be written or read.
    #[error("{path}: {error}; settings are not changed without a journal: run as root")]
    Io {
        /// The file or directory.
        path: String,
        /// The system's error.
        error: io::Error,
    },
    /// Others may have written the journal.
    #[error("{path} has another owner or is writable by others, so it is not trusted: inspect and remove it")]
    Untrusted {
        /// The file.
        path: String,
    },
    /// A line of the journal is damaged.
    #[error(
        "{path}, line {line}: the journal is damaged ({why}); nothing was undone: restore its settings by hand and \
         remove it, or reboot, which resets every setting"
    )]
    Damaged {
        /// The file.
        path: String,
        /// The line.
        line: usize,
        /// The kind of damage.
        why: String,
    },
    /// Another process holds the lock for longer than a change takes.
    #[error(
        "cannot lock {path} within {} s: {}", .limit.as_secs(),
        match .holder {
            Some(process) => format!(
                "process {process} holds the lock and may be stopped; resume it with `kill -CONT {process}`, or end it"
            ),
            None => "another process holds the lock and may be stopped; `lslocks` names it: resume or end it".into(),
        }
    )]
    Locked {
        /// The file.
        path: String,
        /// The wait.
        limit: Duration,
        /// The process that holds it, if known.
        holder: Option<u32>,
    },
    /// Another process has changed these settings and still needs them.
    #[error("{purpose}: owned by {} ({}){}", .owner.name, .owner.process, if *.keep { "; undo that first" } else { ", which is running" })]
    Owned {
        /// The owner.
        owner: Owner,
        /// The purpose.
        purpose: String,
        /// `true` if it was to outlast the process.
        keep: bool,
    },
    /// The kernel refused a change.
    #[error("{}: {error}{}", attempt(setting, new), remedy(error))]
    Refused {
        /// The setting.
        setting: Setting,
        /// The new value.
        new: String,
        /// The kernel's error.
        error: io::Error,
    },
}

/// Describes a refused change.
fn attempt(setting: &Setting, new: &str) -> String {
    match setting {
        Setting::Group(path) if new == "there" => format!("cannot create the control group {path}"),
        _ => format!("{setting} cannot be set to `{new}`"),
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => {
            "; start the container with --privileged, or make the file system writable: mount -o remount,rw MOUNT_POINT"
        }
        io::ErrorKind::PermissionDenied => "; run as root, in a container with --privileged",
        _ => "",
    }
}

/// The settings changed by an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The name of the journal.
    pub name: String,
    /// The owner.
    pub owner: Owner,
    /// The purpose.
    pub purpose: String,
    /// `true` if they are to outlast the process.
    pub keep: bool,
    /// `true` if the process runs and has the journal open.
    pub is_running: bool,
    /// The number of changed settings.
    pub changes: usize,
}

/// The result of undoing.
#[derive(Debug, Default)]
pub struct Undone {
    /// The number of restored settings.
    pub restored: usize,
    /// The settings that were not restored.
    pub left: Vec<Left>,
}

/// A setting that was not restored.
#[derive(Debug)]
pub struct Left {
    /// The setting.
    pub setting: Setting,
    /// Its old value.
    pub old: String,
    /// The reason.
    pub why: String,
    /// `true` if a retry may help.
    pub is_open: bool,
}

/// The journal of one purpose, open for writing. While it is open, no other process undoes its
/// changes.
#[derive(Debug)]
#[must_use = "a journal that is dropped may be undone by any process, unless its settings are to outlast this one"]
pub struct Journal {
    path: PathBuf,
    file: File,
    changed: Vec<Setting>,
}

impl Store {
    /// Returns the directory of this machine's journals.
    #[must_use]
    pub fn system() -> Self {
        Self::at("/run/punctual")
    }

    /// Stores journals in a directory, which is created on demand.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), lock_timeout: LOCK_TIMEOUT }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(file_name(name))
    }

    /// Opens the directory, which no other user may be able to write.
    fn open(&self) -> Result<Directory, JournalError> {
        DirBuilder::new().recursive(true).mode(0o755).create(&self.directory).map_err(at(&self.directory))?;
        Directory::open(&self.directory).map_err(at(&self.directory))
    }

    /// Locks out every other process that would change or undo settings, until the file is dropped.
    fn lock(&self, directory: &Directory) -> Result<File, JournalError> {
        let name = Path::new("lock");
        let opened = match directory.create_file(name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => directory.open_file(name, true),
            created => created,
        };
        let file = opened.map_err(at(&self.directory.join(name)))?;
        self.lock_file(&file, &self.directory.join(name))?;
        Ok(file)
    }

    fn lock_file(&self, file: &File, path: &Path) -> Result<(), JournalError> {
        let limit = self.lock_timeout;
        if punctual_files::lock(file, limit).map_err(at(path))? {
            return Ok(());
        }
        let holder = punctual_files::lock_holder(file);
        Err(JournalError::Locked { path: path.display().to_string(), limit, holder })
    }

    /// Reads a journal under the lock. Removes a file without a head: its owner was killed before
    /// it changed anything.
    fn read_locked(&self, directory: &Directory, name: &str) -> Result<Option<Found>, JournalError> {
        let found = Found::read(directory, &file_name(name))?;
        if found.is_none()
            && let Err(error) = directory.remove_file(&file_name(name))
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(at(&self.path(name))(error));
        }
        Ok(found)
    }

    /// Begins a journal. First undoes the changes that a dead process has left under this name.
    /// With `keep` the settings are to outlast this process.
    ///
    /// # Errors
    /// Another process owns them already, or the file cannot be written.
    pub fn begin(
        &self,
        name: &str,
        purpose: &str,
        keep: bool,
        settings: &mut dyn Settings,
    ) -> Result<Journal, JournalError> {
        let directory = self.open()?;
        let _lock = self.lock(&directory)?;
        let path = self.path(name);
        if let Some(found) = self.read_locked(&directory, name)? {
            let Head { owner, purpose, keep, .. } = &found.head;
            if found.head.boot == boot() && (*keep || found.is_running) {
                let (owner, purpose) = (owner.clone(), purpose.clone());
                return Err(JournalError::Owned { owner, purpose, keep: *keep });
            }
            found.finish(&directory, settings)?;
        }
        let head =
            Head { schema: SCHEMA.into(), boot: boot(), owner: Owner::this(), purpose: purpose.into(), keep };
        let mut file = directory.create_file(&file_name(name)).map_err(at(&path))?;
        self.lock_file(&file, &path)?;
        let line = serde_json::to_string(&head).expect("text and numbers serialize");
        file.write_all(format!("{line}\n").as_bytes()).map_err(at(&path))?;
        Ok(Journal { path, file, changed: Vec::new() })
    }

    /// Returns the settings that have been changed and not been undone.
    ///
    /// # Errors
    /// A journal cannot be read.
    pub fn held(&self) -> Result<Vec<Held>, JournalError> {
        let mut held = Vec::new();
        let Ok(directory) = Directory::open_foreign(&self.directory) else { return Ok(held) };
        let names =
            fs::read_dir(&self.directory).into_iter().flatten().flatten().map(|entry| entry.file_name());
        for file in names.map(PathBuf::from).filter(|name| name.extension().is_some_and(|it| it == ENDING)) {
            if let Some(found) = Found::read(&directory, &file)?
                && found.head.boot == boot()
            {
                held.push(found.held());
            }
        }
        held.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(held)
    }

    /// Undoes the changes in the journal of this name, and removes the journal when nothing is left
    /// to do. Returns `None` if there is no such journal.
    ///
    /// # Errors
    /// The journal cannot be read or is damaged; then nothing was changed.
    pub fn undo(&self, name: &str, settings: &mut dyn Settings) -> Result<Option<Undone>, JournalError> {
        self.undo_if(name, settings, |_| true).map(|undone| undone.map(|(_, undone)| undone))
    }

    fn undo_if(
        &self,
        name: &str,
        settings: &mut dyn Settings,
        is_wanted: impl Fn(&Held) -> bool,
    ) -> Result<Option<(Held, Undone)>, JournalError> {
        if !self.path(name).exists() {
            return Ok(None);
        }
        let directory = self.open()?;
        let _lock = self.lock(&directory)?;
        let Some(found) = self.read_locked(&directory, name)? else { return Ok(None) };
        let held = found.held();
        if !is_wanted(&held) {
            return Ok(None);
        }
        Ok(Some((held, found.finish(&directory, settings)?)))
    }

    /// Undoes the changes of killed processes, and returns the results.
    ///
    /// # Errors
    /// A journal cannot be read.
    pub fn recover(&self, settings: &mut dyn Settings) -> Result<Vec<(Held, Undone)>, JournalError> {
        let mut recovered = Vec::new();
        let is_abandoned = |held: &Held| !held.keep && !held.is_running;
        for held in self.held()?.into_iter().filter(is_abandoned) {
            // Another process may have begun a journal of this name since.
            recovered.extend(self.undo_if(&held.name, settings, is_abandoned)?);
        }
        Ok(recovered)
    }
}

impl Journal {
    /// Makes a change, after recording it. A setting that has the new value already is neither
    /// changed nor undone.
    ///
    /// # Errors
    /// The journal cannot be written, or the kernel refuses the change.
    ///
    /// # Panics
    /// The setting was changed before under this journal: its first value would be unknown after an
    /// interrupted undo.
    pub fn apply(&mut self, change: &Change, settings: &mut dyn Settings) -> Result<(), JournalError> {
        let Change { setting, new } = change;
        assert!(!self.changed.contains(setting), "{setting} is changed twice");
        let refused = |error| JournalError::Refused { setting: setting.clone(), new: new.clone(), error };
        let old = settings.get(setting).map_err(refused)?;
        if setting.canonical(&old) == setting.canonical(new) {
            return Ok(());
        }
        let entry = Entry { setting: setting.clone(), old, new: new.clone(), stored: false };
        note(&mut self.file, &entry).map_err(at(&self.path))?;
        self.changed.push(setting.clone());
        settings.set(setting, new).map_err(refused)?;
        // The kernel may store another value, for example without nonexistent CPUs.
        let stored = settings.get(setting).map_err(refused)?;
        note(&mut self.file, &Entry { new: stored, stored: true, ..entry }).map_err(at(&self.path))
    }
}

fn note(file: &mut File, entry: &Entry) -> io::Result<()> {
    let line = serde_json::to_string(entry).expect("texts and numbers serialize");
    let end = file.stream_position()?;
    let written = file.write_all(format!("{line}\n").as_bytes());
    if written.is_err() {
        // A later line must not continue an incomplete one.
        file.set_len(end)?;
        file.seek(SeekFrom::Start(end))?;
    }
    written
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> JournalError {
    let path = path.display().to_string();
    move |error| JournalError::Io { path, error }
}

fn boot() -> String {
    Tree::system().text(BOOT).unwrap_or_default()
}

fn restore(entry: &Entry, settings: &mut dyn Settings, journal: Option<&mut File>) -> Result<(), Left> {
    let Entry { setting, old, new, stored } = entry;
    let left = |why: String, is_open| Left { setting: setting.clone(), old: old.clone(), why, is_open };
    let now = match settings.get(setting) {
        Ok(now) => setting.canonical(&now),
        // The thread has ended, or the device has gone.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(left("it no longer exists".into(), false));
        }
        Err(error) => return Err(left(error.to_string(), true)),
    };
    if now == setting.canonical(old) {
        return Ok(());
    }
    if *stored && now != setting.canonical(new) {
        return Err(left(format!("it was set to `{now}` in the meantime"), false));
    }
    if *stored && let Some(journal) = journal {
        // The kernel may rewrite the old value as well. Restoring continues without the record, for
        // example on a full disk: it matters only if this process is killed at the write.
        let _ = note(journal, &Entry { stored: false, ..entry.clone() });
    }
    settings.set(setting, old).map_err(|error| left(error.to_string(), true))
}

/// A journal that was read.
struct Found {
    path: PathBuf,
    file: File,
    head: Head,
    entries: Vec<Entry>,
    /// Length of the complete lines, in bytes.
    length: u64,
    is_running: bool,
}

impl Found {
    /// Reads a journal, if there is one with a head. Without the lock, its owner may be about to
    /// write that. An incomplete last line was not followed by its change, or does not yet confirm
    /// one.
    fn read(directory: &Directory, name: &Path) -> Result<Option<Self>, JournalError> {
        let path = directory.path().join(name);
        let opened = match directory.open_file(name, true) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => directory.open_file(name, false),
            opened => opened,
        };
        let mut file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(at(&path)(error)),
        };
        let metadata = file.metadata().map_err(at(&path))?;
        let own = rustix::process::geteuid().as_raw();
        let is_open = metadata.permissions().mode() & 0o022 != 0;
        if is_open || (metadata.uid() != own && metadata.uid() != 0) {
            return Err(JournalError::Untrusted { path: path.display().to_string() });
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(at(&path))?;
        let text = String::from_utf8_lossy(&bytes);
        let damaged =
            |line: usize, why: String| JournalError::Damaged { path: path.display().to_string(), line, why };
        let complete = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut lines = complete.lines().enumerate();
        let Some((_, first)) = lines.next() else { return Ok(None) };
        let head: Head = serde_json::from_str(first).map_err(|error| damaged(1, error.to_string()))?;
        if head.schema != SCHEMA {
            return Err(damaged(1, format!("`{}` belongs to another version of Punctual", head.schema)));
        }
        let entries = lines
            .map(|(at, line)| serde_json::from_str(line).map_err(|error| damaged(at + 1, error.to_string())));
        let entries = entries.collect::<Result<_, _>>()?;
        let is_running = punctual_files::is_locked(&file).map_err(at(&path))?;
        let length = complete.len() as u64 + 1;
        Ok(Some(Self { path, file, head, entries, length, is_running }))
    }

    fn held(&self) -> Held {
        let name = self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let Head { owner, purpose, keep, .. } = &self.head;
        let changes = self.entries.iter().map(|entry| &entry.setting).collect::<BTreeSet<_>>().len();
        let (owner, purpose) = (owner.clone(), purpose.clone());
        Held { name, owner, purpose, keep: *keep, is_running: self.is_running, changes }
    }

    /// Undoes the changes of this boot, and removes the journal unless a setting may be restored
    /// later.
    fn finish(mut self, directory: &Directory, settings: &mut dyn Settings) -> Result<Undone, JournalError> {
        let mut undone = Undone::default();
        if self.head.boot == boot() {
            // Processes still in a group prevent restoring its files.
            for entry in &self.entries {
                if let Setting::Group(path) = &entry.setting {
                    let _ = settings.set(&Setting::Members(path.clone()), "none");
                }
            }
            let truncated = self.file.set_len(self.length);
            let mut journal =
                truncated.and_then(|()| self.file.seek(SeekFrom::End(0))).is_ok().then_some(&mut self.file);
            let mut seen: Vec<&Setting> = Vec::new();
            for entry in self.entries.iter().rev() {
                // The last line for a setting is the current one.
                if seen.contains(&&entry.setting) {
                    continue;
                }
                seen.push(&entry.setting);
                match restore(entry, settings, journal.as_deref_mut()) {
                    Ok(()) => undone.restored += 1,
                    Err(left) => undone.left.push(left),
                }
            }
        }
        if !undone.left.iter().any(|left| left.is_open) {
            let name = Path::new(self.path.file_name().unwrap_or_default());
            directory.remove_file(name).map_err(at(&self.path))?;
        }
        Ok(undone)
    }
}

fn file_name(name: &str) -> PathBuf {
    Path::new(name).with_extension(ENDING)
}

#[cfg(test)]
mod tests;
