//! Files that the caller did not write, read with a limit.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat};

/// The maximum length of a text that people or programs write: a description, a result, a report.
pub(crate) const TEXT_LIMIT: u64 = 64 << 20;

/// Reads a file of at most `limit` bytes. Waits for the writer of a FIFO, as any program does: the
/// path is one that the user named.
///
/// # Errors
/// The file cannot be read. [`FileTooLarge`](io::ErrorKind::FileTooLarge) if it is longer, which a
/// device such as `/dev/zero` is.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    content(File::open(path)?, limit)
}

/// Reads a text of at most 64 MiB, as [`read`].
///
/// # Errors
/// See [`read`]. [`InvalidData`](io::ErrorKind::InvalidData) if it is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let bytes = read(path, TEXT_LIMIT)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

/// Reads a regular file of at most `limit` bytes whose path another process has chosen. Never
/// waits, and never opens an object of another kind.
///
/// # Errors
/// See [`read`]. [`InvalidInput`](io::ErrorKind::InvalidInput) if it is not a regular file.
pub fn read_regular(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    // Without `O_PATH`, the driver of a device sees the opening: that of a watchdog starts it.
    let found = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&found)?.st_mode) != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    // By the examined descriptor: the path may name a device by now. Does not wait for the holder
    // of a lease.
    let descriptor = format!("/proc/self/fd/{}", found.as_raw_fd());
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(descriptor)?;
    content(file, limit)
}

pub(crate) fn content(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let text = format!("longer than the limit of {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn rejects_files_above_limit() {
        let directory = crate::Directory::temporary("punctual-input-").unwrap();
        directory.write(Path::new("file"), b"12345678").unwrap();
        let path = directory.path().join("file");
        assert_eq!(read(&path, 8).unwrap(), b"12345678");
        assert_eq!(read_regular(&path, 8).unwrap(), b"12345678");
        for result in [read(&path, 7), read_regular(&path, 7), read(Path::new("/dev/zero"), 1 << 20)] {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::FileTooLarge);
        }
        directory.write(Path::new("file"), b"\xff").unwrap();
        assert_eq!(read_text(&path).unwrap_err().kind(), ErrorKind::InvalidData);
        directory.remove().unwrap();
    }

    #[test]
    fn opens_regular_files_only() {
        use rustix::fs::inotify;

        let directory = crate::Directory::temporary("punctual-input-").unwrap();
        directory.write(Path::new("file"), b"1").unwrap();
        let [file, fifo, link] = ["file", "fifo", "link"].map(|name| directory.path().join(name));
        // Stands for a device, whose driver sees every opening.
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Mode::RWXU).unwrap();
        std::os::unix::fs::symlink(&fifo, &link).unwrap();
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).unwrap();
        for path in [&file, &fifo] {
            inotify::add_watch(&watch, path, inotify::WatchFlags::OPEN).unwrap();
        }
        let has_been_opened = || rustix::io::read(&watch, &mut [0; 4096]).is_ok();
        for path in [&fifo, &link] {
            assert_eq!(read_regular(path, 8).unwrap_err().kind(), ErrorKind::InvalidInput);
            assert!(!has_been_opened(), "{}", path.display());
        }
        assert_eq!(read_regular(&file, 8).unwrap(), b"1");
        assert!(has_been_opened());
        directory.remove().unwrap();
    }

    #[test]
    fn waits_for_no_writer_of_fifo() {
        let directory = crate::Directory::temporary("punctual-input-").unwrap();
        let path = directory.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        for path in [&path, Path::new("/dev/zero"), directory.path()] {
            assert_eq!(read_regular(path, 8).unwrap_err().kind(), ErrorKind::InvalidInput);
        }
        directory.remove().unwrap();
    }
}
