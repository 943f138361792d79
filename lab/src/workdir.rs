//! The directories for downloads, and for the files of one run.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use xtask_support::{Result, cargo};

/// The prefix of the directories of single runs, followed by the process number of the owner.
const PREFIX: &str = "work-";

/// The lab's directory. Its content can be deleted at any time, and is recreated.
pub(crate) fn cache() -> PathBuf {
    cargo::target_dir().join("lab")
}

/// A directory for one purpose of this process, removed with its contents on drop.
pub(crate) struct Workdir(PathBuf);

impl Workdir {
    /// Creates the directory, and removes those of processes that no longer exist.
    pub(crate) fn new() -> Result<Self> {
        Self::below(&cache())
    }

    fn below(cache: &Path) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = cache.join(format!("{PREFIX}{}-{count}", process::id()));
        sweep(cache);
        fs::create_dir_all(&path).map_err(at(&path))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Workdir {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            // Not `eprintln!`, which panics if it cannot print: in a drop that may abort without
            // further cleanup.
            let _ = writeln!(io::stderr(), "lab: {} stays behind: {error}", self.0.display());
        }
    }
}

/// Removes the directories of killed processes.
fn sweep(cache: &Path) {
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        if owner.is_some_and(|owner| !Path::new("/proc").join(owner).exists()) {
            // Another run may be removing it too.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Creates `directory`, if necessary, and requires that it is writable.
pub(crate) fn takes_files(directory: &Path) -> Result {
    fs::create_dir_all(directory).map_err(at(directory))?;
    let probe = directory.join(format!(".punctual-lab-{}", process::id()));
    fs::write(&probe, "").and_then(|()| fs::remove_file(&probe)).map_err(at(directory))?;
    Ok(())
}

/// Moves all files and directories in `from` to `to`, replacing existing ones with the same names.
///
/// Returns their number.
pub(crate) fn move_contents(from: &Path, to: &Path) -> Result<usize> {
    let mut count = 0;
    for entry in fs::read_dir(from).map_err(at(from))? {
        let entry = entry?;
        fs::create_dir_all(to).map_err(at(to))?;
        move_one(&entry.path(), &to.join(entry.file_name()))?;
        count += 1;
    }
    Ok(count)
}

fn move_one(from: &Path, to: &Path) -> Result {
    if to.symlink_metadata().is_ok() {
        remove(to).map_err(at(to))?;
    }
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {}
        other => return Ok(other.map_err(at(to))?),
    }
    if from.is_dir() && !from.is_symlink() {
        fs::create_dir_all(to).map_err(at(to))?;
        move_contents(from, to)?;
    } else if from.is_file() {
        fs::copy(from, to).map_err(at(to))?;
    } else {
        eprintln!("lab: {} is not a regular file and is not brought back", from.display());
    }
    Ok(())
}

/// Removes the file or directory at `path`; the target of a link is not removed.
fn remove(path: &Path) -> io::Result<()> {
    if path.is_dir() && !path.is_symlink() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

/// Adds the path to an error.
pub(crate) fn at(path: &Path) -> impl Fn(io::Error) -> String + '_ {
    move |error| format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask_support::scratch::Scratch;

    #[test]
    fn removes_own_and_stale_directories() {
        let scratch = Scratch::new("workdir").unwrap();
        // No process has a number this large.
        let stale = scratch.path().join(format!("{PREFIX}99999999-0"));
        fs::create_dir(&stale).unwrap();
        let work = Workdir::below(scratch.path()).unwrap();
        assert!(work.path().exists() && !stale.exists());
        fs::write(work.path().join("file"), "x").unwrap();
        drop(work);
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    }

    #[test]
    fn moves_files_over_older_ones() {
        let scratch = Scratch::new("move").unwrap();
        let (from, to) = (scratch.path().join("from"), scratch.path().join("to"));
        fs::create_dir_all(from.join("sub")).unwrap();
        fs::write(from.join("sub/new"), "new").unwrap();
        fs::create_dir_all(to.join("sub")).unwrap();
        fs::write(to.join("kept"), "kept").unwrap();
        assert_eq!(move_contents(&from, &to).unwrap(), 1);
        assert_eq!(fs::read_to_string(to.join("sub/new")).unwrap(), "new");
        assert!(to.join("kept").exists());
    }
}
