//! A directory outside the workspace that every user can read and that is removed afterwards.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A temporary directory, removed with its contents when dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates the directory; fails if the name is taken, so that no other user can have prepared
    /// it.
    pub fn new(purpose: &str) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("punctual-{purpose}-{}", std::process::id()));
        fs::create_dir(&path)?;
        let scratch = Self(path);
        fs::set_permissions(&scratch.0, Permissions::from_mode(0o755))?;
        Ok(scratch)
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Puts an executable into the directory, runnable by every user, and returns its new path.
    ///
    /// Creates a hard link if possible: the tests of a workspace take gigabytes.
    pub fn stage(&self, executable: &Path) -> io::Result<PathBuf> {
        let name = executable.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let staged = self.0.join(name);
        let is_for_everyone = fs::metadata(executable)?.permissions().mode() & 0o777 == 0o755;
        if is_for_everyone && fs::hard_link(executable, &staged).is_ok() {
            return Ok(staged);
        }
        fs::copy(executable, &staged)?;
        fs::set_permissions(&staged, Permissions::from_mode(0o755))?;
        Ok(staged)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            // Not `eprintln!`, which panics if it cannot print: in a drop this could end the
            // process without further cleanup.
            let _ = writeln!(io::stderr(), "xtask: {} stays behind: {error}", self.0.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn staged_copy_is_executable_by_all_and_original_unchanged() {
        let scratch = Scratch::new("stage-test").unwrap();
        let here = scratch.path().join("built");
        fs::create_dir(&here).unwrap();
        for mode in [0o755, 0o700] {
            let original = here.join(format!("program-{mode:o}"));
            fs::write(&original, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&original, Permissions::from_mode(mode)).unwrap();
            let staged = scratch.stage(&original).unwrap();
            assert_eq!(fs::read(&staged).unwrap(), b"#!/bin/sh\n");
            let mode_of = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode_of(&staged), mode_of(&original)), (0o755, mode));
        }
    }
}
