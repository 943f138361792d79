//! Another user, as the attacker.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, io};

use punctual_process::child::{BoundedCommand, TEST_LIMIT};

/// The user ID of `nobody`.
pub(crate) const ATTACKER: u32 = 65534;

/// Returns `true` if this process can become another user, which tests of attacks need.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A directory that is removed after the test.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Creates a directory that all users may write, and in which they may rename and remove any
    /// file.
    pub(crate) fn shared() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        // Relaxed: each number only has to be unique.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("punctual-files-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a shell script as another user in a directory.
pub(crate) fn attack(directory: &Path, script: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-ec", script]).current_dir(directory).uid(ATTACKER).gid(ATTACKER).stdin(Stdio::null());
    assert!(shell.status_within(TEST_LIMIT).unwrap().success(), "{script}");
}

/// Returns the permissions of a file.
pub(crate) fn mode(path: &Path) -> io::Result<u32> {
    Ok(fs::symlink_metadata(path)?.permissions().mode() & 0o7777)
}
