//! The kernel's tracing directory, and instances of it.
//!
//! An instance has its own buffers, events and filters, so a recording does not disturb another
//! one. Its recorder holds a lock on it: a killed recorder leaves its instance behind, unlocked,
//! and the next recording removes it.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use punctual_files::Owned;

use super::error::RecordError;

const PREFIX: &str = "punctual-";

/// The option by which an instance receives the marks in the buffer that every system has. Older
/// kernels, such as 6.12, do not have it.
const COPY: &str = "copy_trace_marker";

/// The file that turns a buffer on or off.
const ON: &str = "tracing_on";

/// Returns the first existing mount point of tracefs.
pub(super) fn find() -> Result<PathBuf, RecordError> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mounted = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (path, kind) = (words.nth(1)?, words.next()?);
        (kind == "tracefs").then(|| PathBuf::from(path))
    });
    let usual = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].map(PathBuf::from);
    mounted.chain(usual).find(|path| path.join("instances").is_dir()).ok_or_else(|| {
        // A directory that cannot be read is a different error than one that does not exist.
        match fs::read_dir("/sys/kernel/tracing") {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                RecordError::Permission { path: "/sys/kernel/tracing".into() }
            }
            _ => RecordError::NoTracefs,
        }
    })
}

/// Returns the content of a file of tracefs. Some files return everything in the first read or
/// never, so that read is large.
pub(super) fn content(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = fs::File::open(path)?;
    let mut bytes = vec![0; 64 << 10];
    let count = file.read(&mut bytes)?;
    bytes.truncate(count);
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens the pages of a CPU for nonblocking reads.
pub(super) fn open_pages(instance: &Path, cpu: u32) -> Result<fs::File, RecordError> {
    let path = instance.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
    let mut options = fs::File::options();
    options.read(true).custom_flags(libc::O_NONBLOCK);
    options.open(&path).map_err(|error| RecordError::kernel(&path, "opening", error))
}

/// Removes the instances of killed recorders, which otherwise continue recording, and returns their
/// names.
///
/// Every recording does this when it starts. Without access to tracefs, nothing happens.
pub fn remove_leftovers() -> Vec<String> {
    find().map_or(Vec::new(), |tracefs| remove_leftovers_in(&tracefs))
}

pub(super) fn remove_leftovers_in(tracefs: &Path) -> Vec<String> {
    let abandoned = Owned::abandoned(&tracefs.join("instances"), PREFIX);
    let removed = abandoned.iter().filter(|instance| fs::remove_dir(instance.path()).is_ok());
    removed.filter_map(|instance| Some(instance.path().file_name()?.to_string_lossy().into_owned())).collect()
}

/// Returns whether the buffer that every system has accepts marks: if it is off, as other tools
/// leave it, each write fails with EBADF, and the kernel copies none of them.
fn accepts_marks(tracefs: &Path) -> bool {
    fs::read_to_string(tracefs.join(ON)).is_ok_and(|on| on.trim() != "0")
}

/// Returns a warning if apps that are already running cannot mark their jobs.
///
/// Apps that a recorder starts do not depend on that: see [`Buffers::for_apps`].
#[must_use]
pub fn refused_marks() -> Option<String> {
    find().ok().and_then(|tracefs| refused_marks_in(&tracefs))
}

fn refused_marks_in(tracefs: &Path) -> Option<String> {
    (!accepts_marks(tracefs)).then(|| {
        format!(
            "apps that are already running cannot mark their jobs: {} is 0; write 1 to it, or let this command start the app",
            tracefs.join(ON).display()
        )
    })
}

/// The buffers of a recording that has not begun, for callers that must know in advance where apps
/// mark their jobs.
#[derive(Debug)]
pub struct Buffers {
    pub(super) tracefs: PathBuf,
    pub(super) main: Instance,
    /// The instances of recorders that had been killed.
    pub(super) removed: Vec<String>,
}

impl Buffers {
    /// Creates the buffers. Dropping them removes them.
    ///
    /// # Errors
    /// Returns an error if tracefs does not exist or is not accessible to this user.
    pub fn new() -> Result<Self, RecordError> {
        let tracefs = find()?;
        let removed = remove_leftovers_in(&tracefs);
        let main = Instance::create(&tracefs)?;
        main.set_on(false)?;
        Ok(Self { tracefs, main, removed })
    }

    /// Returns the value of the variable `PUNCTUAL_TRACE` with which Punctual apps mark their jobs
    /// in the recording.
    ///
    /// The value is `1` if the kernel copies their marks from the buffer that every system has, and
    /// that buffer accepts any. Otherwise, the value is the path of this recording's own file, and
    /// then the app must end first: as long as the app keeps that file open, the kernel keeps the
    /// recording's buffers.
    pub fn for_apps(&self) -> String {
        self.main.for_apps()
    }
}

/// An instance, which is removed when it is dropped.
#[derive(Debug)]
pub(super) struct Instance(Owned);

impl Instance {
    /// Creates an instance with a unique name.
    pub(super) fn create(tracefs: &Path) -> Result<Self, RecordError> {
        let instances = tracefs.join("instances");
        let created = Owned::create(&instances, PREFIX);
        created.map(Self).map_err(|error| RecordError::kernel(&instances, "making an instance", error))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.path().join(name).exists()
    }

    pub(super) fn read(&self, name: &str) -> Result<String, RecordError> {
        let path = self.path().join(name);
        fs::read_to_string(&path).map_err(|error| RecordError::kernel(&path, "reading", error))
    }

    pub(super) fn write(&self, name: &str, value: &str) -> Result<(), RecordError> {
        let path = self.path().join(name);
        fs::write(&path, value).map_err(|error| RecordError::kernel(&path, "writing", error))
    }

    /// See [`Buffers::for_apps`].
    pub(super) fn for_apps(&self) -> String {
        let tracefs = self.path().ancestors().nth(2);
        match self.has(&format!("options/{COPY}")) && tracefs.is_some_and(accepts_marks) {
            true => "1".to_owned(),
            false => self.path().join("trace_marker_raw").to_string_lossy().into_owned(),
        }
    }

    /// Turns recording on or off.
    pub(super) fn set_on(&self, on: bool) -> Result<(), RecordError> {
        if !on {
            self.prefer(COPY, "0");
        }
        self.write(ON, if on { "1" } else { "0" })
    }

    /// Receives the marks that apps write to the buffer that every system has. To be used only
    /// while tracing is on: an instance that receives marks but records nothing rejects them, and
    /// then the kernel passes them to no other recording either.
    pub(super) fn take_marks(&self) {
        self.prefer(COPY, "1");
    }

    /// Sets an option that the kernel may not have, or not for instances.
    pub(super) fn prefer(&self, option: &str, value: &str) {
        // A recording without the option has less information, but no errors.
        let _ = self.write(&format!("options/{option}"), value);
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.set_on(false);
        // The instance is busy for a moment after its last file has been closed.
        for _ in 0..20 {
            match fs::remove_dir(self.path()) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                // For any other error, the next recording tries again.
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn avoids_top_level_buffer_that_is_off() {
        let place = tempfile::tempdir().unwrap();
        let tracefs = place.path();
        fs::create_dir(tracefs.join("instances")).unwrap();
        let instance = Instance::create(tracefs).unwrap();
        let own = instance.path().join("trace_marker_raw").to_string_lossy().into_owned();
        fs::write(tracefs.join(ON), "1\n").unwrap();
        assert_eq!(instance.for_apps(), own, "the kernel copies no marks");
        fs::create_dir(instance.path().join("options")).unwrap();
        fs::write(instance.path().join("options").join(COPY), "0\n").unwrap();
        assert_eq!((instance.for_apps(), refused_marks_in(tracefs)), ("1".to_owned(), None));
        fs::write(tracefs.join(ON), "0\n").unwrap();
        assert_eq!(instance.for_apps(), own);
        let warning = refused_marks_in(tracefs).unwrap();
        assert!(warning.contains("tracing_on is 0; write 1 to it"), "{warning}");
    }
}
