//! A directory outside the workspace that every user can read and that is gone afterwards.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A temporary directory, removed with its contents when dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates the directory; fails if the name is taken, so nobody can have prepared it.
    pub fn new(purpose: &str) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("punctual-{purpose}-{}", std::process::id()));
        fs::create_dir(&path)?;
        let scratch = Self(path);
        fs::set_permissions(&scratch.0, Permissions::from_mode(0o755))?;
        Ok(scratch)
    }

    /// Where the directory is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Copies an executable here, for everyone to run, and returns the path of the copy.
    pub fn stage(&self, executable: &Path) -> io::Result<PathBuf> {
        let name = executable.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let copy = self.0.join(name);
        fs::copy(executable, &copy)?;
        fs::set_permissions(&copy, Permissions::from_mode(0o755))?;
        Ok(copy)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            // Not `eprintln!`, which panics where it cannot print: in a drop that may be the end without further clean-up.
            let _ = writeln!(io::stderr(), "xtask: {} stays behind: {error}", self.0.display());
        }
    }
}
