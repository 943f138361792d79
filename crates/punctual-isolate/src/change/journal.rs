//! What has been changed, in a file that outlives the process that changes it.
//!
//! The first line names the boot, the owner and the purpose. Each change has two lines: one written before the change, and
//! one written after it with the value that the kernel stored, which may differ from the value that was written. If the
//! second line is missing, the process was killed in between and the stored value is unknown; undoing then restores the old
//! value without comparing. The file is not flushed to a disk: a crash of the machine resets the settings as well.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Change, Setting, Settings};
use crate::tree::Tree;

const SCHEMA: &str = "punctual-journal/1";
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
const ENDING: &str = "journal";

/// Where journals are.
#[derive(Debug, Clone)]
pub struct Store {
    directory: PathBuf,
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
    /// The kernel stores `new`. Otherwise a write is in flight, and the setting may have any value.
    #[serde(default)]
    stored: bool,
}

/// A process that has changed settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its number.
    pub process: u32,
    /// When it began, in ticks since boot.
    pub started: u64,
    /// What it calls itself.
    pub name: String,
}

impl Owner {
    /// The calling process.
    #[must_use]
    pub fn this() -> Self {
        let process = std::process::id();
        let found = crate::facts::Thread::read(&Tree::system(), process, process);
        let (started, name) = found.map_or((0, String::new()), |thread| (thread.started, thread.name));
        Self { process, started, name }
    }

    /// Whether it still runs.
    #[must_use]
    pub fn lives(&self) -> bool {
        let found = crate::facts::Thread::read(&Tree::system(), self.process, self.process);
        found.is_some_and(|thread| thread.started == self.started)
    }
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// It cannot be written or read.
    #[error(
        "{path}: {error}; settings are not changed without a journal: run as root, or give a directory that can be written"
    )]
    Io {
        /// The file or directory.
        path: String,
        /// What the system says.
        error: io::Error,
    },
    /// Others may have written it.
    #[error(
        "{path} belongs to somebody else, or others may write it; as what it says is done, look at it and remove it"
    )]
    Untrusted {
        /// The file.
        path: String,
    },
    /// A line of it makes no sense.
    #[error(
        "{path}, line {line}: it is damaged ({why}); nothing of it was undone. Look at it, set back by hand what it says, and \
         remove it, or boot: that sets back everything"
    )]
    Damaged {
        /// The file.
        path: String,
        /// The line.
        line: usize,
        /// What is the matter.
        why: String,
    },
    /// Somebody else has changed these settings and still needs them.
    #[error("{purpose}: {} ({}) has it{}", .owner.name, .owner.process, if *.keep { "; undo that first" } else { ", and runs" })]
    Owned {
        /// Who.
        owner: Owner,
        /// What for.
        purpose: String,
        /// Whether it was to last beyond the process.
        keep: bool,
    },
    /// The kernel refuses a change.
    #[error("{setting} cannot be set to `{new}`: {error}")]
    Refused {
        /// What was to be set.
        setting: Setting,
        /// To what.
        new: String,
        /// What the kernel says.
        error: io::Error,
    },
}

/// What is known of settings that somebody has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The name of the journal.
    pub name: String,
    /// Who changed them.
    pub owner: Owner,
    /// What for.
    pub purpose: String,
    /// Whether they are to outlast the process.
    pub keep: bool,
    /// Number of settings that were changed.
    pub changes: usize,
}

/// What came of undoing.
#[derive(Debug, Default)]
pub struct Undone {
    /// How many settings are again as they were.
    pub restored: usize,
    /// What was left as it is.
    pub left: Vec<Left>,
}

/// A setting that was not set back.
#[derive(Debug)]
pub struct Left {
    /// Which.
    pub setting: Setting,
    /// What it was.
    pub old: String,
    /// Why not.
    pub why: String,
    /// Whether trying again may help.
    pub is_open: bool,
}

/// The journal of one purpose, open for writing.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    changed: Vec<Setting>,
}

impl Store {
    /// Where journals of this machine are.
    #[must_use]
    pub fn system() -> Self {
        Self::at("/run/punctual")
    }

    /// Journals in a directory, which is created when it is needed.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name).with_extension(ENDING)
    }

    /// Holds off every other process that would change or undo anything, until the file is dropped.
    fn lock(&self) -> Result<File, JournalError> {
        DirBuilder::new().recursive(true).mode(0o755).create(&self.directory).map_err(at(&self.directory))?;
        let path = self.directory.join("lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(at(&path))?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)
            .map_err(|error| at(&path)(error.into()))?;
        Ok(file)
    }

    /// Begins a journal. What a dead process has left under that name is undone first. With `keep` the settings are to
    /// outlast this process.
    ///
    /// # Errors
    /// Somebody has them already, or the file cannot be written.
    pub fn begin(
        &self,
        name: &str,
        purpose: &str,
        keep: bool,
        settings: &mut dyn Settings,
    ) -> Result<Journal, JournalError> {
        let _lock = self.lock()?;
        let path = self.path(name);
        if let Some((head, entries)) = read(&path)? {
            if head.boot == boot() && (head.keep || head.owner.lives()) {
                return Err(JournalError::Owned {
                    owner: head.owner,
                    purpose: head.purpose,
                    keep: head.keep,
                });
            }
            finish(&path, &head, &entries, settings)?;
        }
        let head =
            Head { schema: SCHEMA.into(), boot: boot(), owner: Owner::this(), purpose: purpose.into(), keep };
        let open = OpenOptions::new().create_new(true).append(true).mode(0o600).open(&path);
        let mut file = open.map_err(at(&path))?;
        let line = serde_json::to_string(&head).expect("it is of texts and numbers");
        file.write_all(format!("{line}\n").as_bytes()).map_err(at(&path))?;
        Ok(Journal { path, file, changed: Vec::new() })
    }

    /// What has been changed and not been undone.
    ///
    /// # Errors
    /// A journal cannot be read.
    pub fn held(&self) -> Result<Vec<Held>, JournalError> {
        let mut held = Vec::new();
        for path in fs::read_dir(&self.directory).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|ending| ending == ENDING)
                && let Some((head, entries)) = read(&path)?
                && head.boot == boot()
            {
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                let Head { owner, purpose, keep, .. } = head;
                let changes = entries.iter().map(|entry| &entry.setting).collect::<BTreeSet<_>>().len();
                held.push(Held { name, owner, purpose, keep, changes });
            }
        }
        held.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(held)
    }

    /// Undoes what a journal of this name says, and removes it when nothing is left to do. `None` if there is none.
    ///
    /// # Errors
    /// It cannot be read, or makes no sense; nothing was changed then.
    pub fn undo(&self, name: &str, settings: &mut dyn Settings) -> Result<Option<Undone>, JournalError> {
        let path = self.path(name);
        if !path.exists() {
            return Ok(None);
        }
        let _lock = self.lock()?;
        let Some((head, entries)) = read(&path)? else { return Ok(None) };
        finish(&path, &head, &entries, settings).map(Some)
    }

    /// Undoes what processes have left that were killed, and says how much that was.
    ///
    /// # Errors
    /// A journal cannot be read.
    pub fn recover(&self, settings: &mut dyn Settings) -> Result<Vec<(Held, Undone)>, JournalError> {
        let mut recovered = Vec::new();
        for held in self.held()?.into_iter().filter(|held| !held.keep && !held.owner.lives()) {
            if let Some(undone) = self.undo(&held.name, settings)? {
                recovered.push((held, undone));
            }
        }
        Ok(recovered)
    }
}

impl Journal {
    /// Makes a change, after noting it. What already is as it should be is not changed, nor ever undone.
    ///
    /// # Errors
    /// The journal cannot be written, or the kernel refuses the change.
    ///
    /// # Panics
    /// The setting was changed before under this journal: its first value would not be known after an interrupted undo.
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
        // The kernel may store another value, for example without the CPUs that do not exist.
        let stored = settings.get(setting).map_err(refused)?;
        note(&mut self.file, &Entry { new: stored, stored: true, ..entry }).map_err(at(&self.path))
    }
}

fn note(file: &mut File, entry: &Entry) -> io::Result<()> {
    let line = serde_json::to_string(entry).expect("texts and numbers serialize");
    file.write_all(format!("{line}\n").as_bytes())
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> JournalError {
    let path = path.display().to_string();
    move |error| JournalError::Io { path, error }
}

fn boot() -> String {
    Tree::system().text(BOOT).unwrap_or_default()
}

/// Undoes what is of this boot, and removes the journal unless something may be undone later.
fn finish(
    path: &Path,
    head: &Head,
    entries: &[Entry],
    settings: &mut dyn Settings,
) -> Result<Undone, JournalError> {
    let mut undone = Undone::default();
    if head.boot == boot() {
        // Who is still in a group keeps its files from being set back.
        for entry in entries {
            if let Setting::Group(path) = &entry.setting {
                let _ = settings.set(&Setting::Members(path.clone()), "none");
            }
        }
        let mut file = OpenOptions::new().append(true).open(path).ok();
        let mut seen: Vec<&Setting> = Vec::new();
        for entry in entries.iter().rev() {
            // The last line on a setting is the current one.
            if seen.contains(&&entry.setting) {
                continue;
            }
            seen.push(&entry.setting);
            match restore(entry, settings, file.as_mut()) {
                Ok(()) => undone.restored += 1,
                Err(left) => undone.left.push(left),
            }
        }
    }
    if !undone.left.iter().any(|left| left.is_open) {
        fs::remove_file(path).map_err(at(path))?;
    }
    Ok(undone)
}

fn restore(entry: &Entry, settings: &mut dyn Settings, journal: Option<&mut File>) -> Result<(), Left> {
    let Entry { setting, old, new, stored } = entry;
    let left = |why: String, is_open| Left { setting: setting.clone(), old: old.clone(), why, is_open };
    let now = match settings.get(setting) {
        Ok(now) => setting.canonical(&now),
        // A thread that has ended, a device that is gone.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(left("it is not there any more".into(), false));
        }
        Err(error) => return Err(left(error.to_string(), true)),
    };
    if now == setting.canonical(old) {
        return Ok(());
    }
    if *stored && now != setting.canonical(new) {
        return Err(left(format!("somebody has set it to `{now}` since"), false));
    }
    if *stored && let Some(journal) = journal {
        // The kernel may rewrite the old value as well. Restoring goes on without the note, for example on a full disk: it
        // matters only if this process is killed at the write.
        let _ = note(journal, &Entry { stored: false, ..entry.clone() });
    }
    settings.set(setting, old).map_err(|error| left(error.to_string(), true))
}

/// The lines of a journal, if there is one. An incomplete last line was not followed by its change, or does not yet confirm
/// one.
fn read(path: &Path) -> Result<Option<(Head, Vec<Entry>)>, JournalError> {
    let text = match fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(at(path)(error)),
    };
    let metadata = fs::symlink_metadata(path).map_err(at(path))?;
    let own = rustix::process::geteuid().as_raw();
    let is_open = metadata.permissions().mode() & 0o022 != 0;
    if !metadata.is_file() || is_open || (metadata.uid() != own && metadata.uid() != 0) {
        return Err(JournalError::Untrusted { path: path.display().to_string() });
    }
    let damaged =
        |line: usize, why: String| JournalError::Damaged { path: path.display().to_string(), line, why };
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut lines = complete.lines().enumerate();
    let Some((_, first)) = lines.next() else {
        // Not even the head was written, so nothing was changed.
        fs::remove_file(path).map_err(at(path))?;
        return Ok(None);
    };
    let head: Head = serde_json::from_str(first).map_err(|error| damaged(1, error.to_string()))?;
    if head.schema != SCHEMA {
        return Err(damaged(1, format!("`{}` is of another version of Punctual", head.schema)));
    }
    let entries = lines
        .map(|(at, line)| serde_json::from_str(line).map_err(|error| damaged(at + 1, error.to_string())));
    Ok(Some((head, entries.collect::<Result<_, _>>()?)))
}

#[cfg(test)]
mod tests;
