//! Memory that other processes can read, and only this one can write.

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;

use punctual_core::metrics::NAME;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Maximum length of an app's name in a file name, in bytes; the kernel allows 249 in total.
const MAX_NAME: usize = 200;

/// A mapping of an anonymous file.
#[derive(Debug)]
pub(super) struct Region {
    start: NonNull<u8>,
    size: usize,
}

// SAFETY: it is an address and a size; the memory is only used as atomics, except by `write`.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Allocates and maps `size` zeroed bytes for `app`. The file gives access to processes that
    /// open it.
    pub(super) fn new(app: &str, size: usize) -> io::Result<(Self, OwnedFd)> {
        let app = &app[..app.floor_char_boundary(MAX_NAME)];
        let file = memfd_create(format!("{NAME}{app}"), MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, size as u64)?;
        // Now, while it can be refused: a page that is missing later ends the process by SIGBUS, in
        // a job.
        punctual_files::allocate(&file, size as u64)?;
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
        let start = unsafe { mmap(std::ptr::null_mut(), size, protection, flags, &file, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok((Self { start, size }, file))
    }

    /// Returns the address of a `T` at the offset `at` in bytes.
    ///
    /// # Panics
    /// Panics if it is not within the region or not aligned.
    pub(super) fn at<T>(&self, at: usize) -> NonNull<T> {
        assert!(at.checked_add(size_of::<T>()).is_some_and(|end| end <= self.size));
        assert!(at.is_multiple_of(align_of::<T>()), "the start is that of a page");
        // SAFETY: it is within the mapping, as was just checked.
        unsafe { self.start.add(at).cast() }
    }

    /// Writes `bytes`, before others use the region.
    pub(super) fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at.checked_add(bytes.len()).is_some_and(|end| end <= self.size));
        // SAFETY: they fit, as was just checked, and do not overlap the mapping, to which there are
        // no references yet.
        unsafe { self.start.add(at).copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this size, and users of the memory keep the region alive.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.size) };
        debug_assert!(unmapped.is_ok(), "it is mapped");
    }
}

/// Prevents changes of the size of `file` and further writable mappings.
pub(super) fn seal(file: &OwnedFd) {
    // Before Linux 5.1 writing cannot be sealed. A process that may open the file may kill this one
    // as well, so this only protects from mistakes.
    let size = SealFlags::SHRINK | SealFlags::GROW;
    let _ = fcntl_add_seals(file, size);
    let _ = fcntl_add_seals(file, SealFlags::FUTURE_WRITE | SealFlags::SEAL);
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn others_can_read_but_not_write_or_truncate() {
        let (region, file) = Region::new("app", 8192).unwrap();
        region.write(4096, b"text");
        seal(&file);
        // SAFETY: zero is valid for an atomic, and the region is zeroed.
        unsafe { region.at::<AtomicU64>(64).as_ref() }.store(17, Ordering::Relaxed);
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        let target = std::fs::read_link(&link).unwrap();
        assert!(target.to_str().unwrap().starts_with("/memfd:punctual:app"), "{target:?}");

        let theirs = File::open(&link).unwrap();
        let mut word = [0; 8];
        theirs.read_exact_at(&mut word, 64).unwrap();
        assert_eq!(u64::from_ne_bytes(word), 17);
        // As root, the file can be opened for writing; it remains unchanged nevertheless.
        if let Ok(file) = File::options().write(true).open(&link) {
            assert!(file.write_at(b"!", 64).is_err());
            assert!(file.set_len(0).is_err());
        }
        theirs.read_exact_at(&mut word, 64).unwrap();
        assert_eq!(u64::from_ne_bytes(word), 17);
    }

    #[test]
    #[should_panic(expected = "end <= self.size")]
    fn rejects_offset_at_end() {
        let (region, _file) = Region::new("app", 4096).unwrap();
        let _ = region.at::<u64>(4096);
    }
}
