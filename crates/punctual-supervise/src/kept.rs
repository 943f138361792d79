//! The directory with what an app keeps for the process after it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;

/// Where shared memory has names.
const PLACE: &str = "/dev/shm";
const PREFIX: &str = "punctual-kept-";

/// A directory of shared memory; goes with what is in it when dropped.
#[derive(Debug)]
pub(crate) struct Kept(PathBuf);

impl Kept {
    /// Makes it, and removes those of supervisors that were killed.
    pub(crate) fn new() -> io::Result<Self> {
        Self::new_in(Path::new(PLACE))
    }

    fn new_in(place: &Path) -> io::Result<Self> {
        let entries = fs::read_dir(place).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_str().is_some_and(is_left_behind)) {
            let _ = fs::remove_dir_all(entry.path());
        }
        let path = place.join(format!("{PREFIX}{}", name_of(std::process::id())?));
        // Nobody else reads or writes there, and nothing that is there already is used.
        rustix::fs::mkdir(&path, Mode::RWXU)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process, and when it began: another may have its number later.
fn name_of(process: u32) -> io::Result<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let begun = stat.rsplit_once(')').and_then(|(_, fields)| fields.split_whitespace().nth(19));
    let begun = begun.ok_or_else(|| io::Error::other("the kernel does not say when this process began"))?;
    Ok(format!("{process}-{begun}"))
}

/// Whether it is the directory of a process that has ended.
fn is_left_behind(name: &str) -> bool {
    let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-')?.0.parse().ok());
    let Some(process) = process else { return false };
    match name_of(process) {
        Ok(now) => name != format!("{PREFIX}{now}"),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_when_it_is_dropped_and_when_its_owner_was_killed() {
        let place = std::env::temp_dir().join(format!("punctual-kept-place-{}", std::process::id()));
        fs::create_dir(&place).unwrap();
        // Process 1 has not begun then, and no process has the other number.
        for left in ["punctual-kept-1-99999999999", "punctual-kept-4194305-7"] {
            fs::create_dir(place.join(left)).unwrap();
            fs::write(place.join(left).join("axis"), "x").unwrap();
        }
        fs::create_dir(place.join("punctual-kept-x")).unwrap();
        let kept = Kept::new_in(&place).unwrap();
        fs::write(kept.path().join("axis"), "x").unwrap();
        let there = || fs::read_dir(&place).unwrap().count();
        assert_eq!(there(), 2, "what others left is gone");
        assert!(Kept::new_in(&place).is_err(), "one has it");
        drop(kept);
        assert_eq!(there(), 1);
        fs::remove_dir_all(&place).unwrap();
    }
}
