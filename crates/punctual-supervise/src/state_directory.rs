//! The directory for the state that an app keeps for its next process.

use std::io;
use std::path::Path;

use punctual_files::Owned;

/// The file system for named shared memory.
const PLACE: &str = "/dev/shm";
const PREFIX: &str = "punctual-state-";

/// A private directory in shared memory, which is removed with its content on drop.
#[derive(Debug)]
pub(crate) struct StateDirectory(Option<Owned>);

impl StateDirectory {
    /// Creates the directory, and removes those of killed supervisors.
    pub(crate) fn new() -> io::Result<Self> {
        Self::new_in(Path::new(PLACE))
    }

    fn new_in(place: &Path) -> io::Result<Self> {
        for abandoned in Owned::abandoned(place, PREFIX) {
            let _ = abandoned.remove();
        }
        Owned::create(place, PREFIX).map(|owned| Self(Some(owned)))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.as_ref().map_or(Path::new(""), Owned::path)
    }
}

impl Drop for StateDirectory {
    fn drop(&mut self) {
        let _ = self.0.take().map(Owned::remove);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn removes_directories_of_dead_supervisors_only() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        // Neither process runs: the number of one does not exist, nor does the start time of the
        // other.
        for left in ["punctual-state-1-99999999999", "punctual-state-4194305-7"] {
            fs::create_dir(place.join(left)).unwrap();
            fs::write(place.join(left).join("axis"), "x").unwrap();
        }
        let state = StateDirectory::new_in(place).unwrap();
        fs::write(state.path().join("axis"), "x").unwrap();
        let count = || fs::read_dir(place).unwrap().count();
        assert_eq!(count(), 1, "directories of dead supervisors are removed");
        let second = StateDirectory::new_in(place).unwrap();
        assert!(state.path().join("axis").exists(), "the directory of a running supervisor");
        drop(second);
        drop(state);
        assert_eq!(count(), 0);
    }
}
