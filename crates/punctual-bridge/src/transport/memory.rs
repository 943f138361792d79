//! Files in memory that two processes share, and their mappings.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

/// Bytes of a word.
pub(super) const WORD: usize = size_of::<u64>();

/// The rights of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    ReadWrite,
}

/// A file in memory, mapped as words.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread, and gives access to atomics only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `file`, which cannot become shorter, and has at least `length` bytes.
    pub(super) fn new(file: BorrowedFd<'_>, length: usize, access: Access) -> io::Result<Self> {
        let seals = rustix::fs::fcntl_get_seals(file)?;
        let actual = usize::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or_default();
        if !seals.contains(SealFlags::SHRINK) || actual < length || length < WORD {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the shared memory may become shorter"));
        }
        let protection = match access {
            Access::Read => ProtFlags::READ,
            Access::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
        };
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe { rustix::mm::mmap(std::ptr::null_mut(), length, protection, flags, file, 0) }?;
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at 0"))?;
        Ok(Self { start, words: length / WORD })
    }

    /// Returns the words.
    pub(super) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has at least this many words, is aligned to a page, and exists as
        // long as `self`. The file cannot become shorter, so every access succeeds. Other processes
        // may change the words at any time, as is permitted for atomics; in a mapping for reading,
        // no code of this crate stores to them, and loads are relaxed ones of one machine word.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }

    /// Returns the words for an unlimited time.
    ///
    /// # Safety
    /// The result is not used after the mapping has been dropped.
    pub(super) unsafe fn unbounded_words(&self) -> &'static [AtomicU64] {
        // SAFETY: as in `words`, and by the contract of this function.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }

    /// Returns the low half of a word, as a futex.
    pub(super) fn futex(&self, word: usize) -> Option<&AtomicU32> {
        let half = if cfg!(target_endian = "little") { 0 } else { 1 };
        let word: *const AtomicU64 = self.words().get(word)?;
        // SAFETY: half a word inside of the mapping, aligned to its size. This crate uses the word
        // by this function only, so accesses have one size.
        Some(unsafe { &*word.cast::<AtomicU32>().add(half) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; by the contracts of the methods, nothing uses it afterwards.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast::<c_void>(), self.words * WORD) };
    }
}

/// Creates a file of `length` bytes with the rights to read and write, and maps it.
///
/// A lack of memory is an error here, rather than SIGBUS later. The file is not sealed yet, except
/// against a change of its length.
pub(super) fn create(name: &str, length: usize) -> io::Result<(OwnedFd, Mapping)> {
    let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    rustix::fs::ftruncate(&file, length as u64)?;
    punctual_files::allocate(&file, length as u64)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
    let mapping = Mapping::new(file.as_fd(), length, Access::ReadWrite)?;
    Ok((file, mapping))
}

/// Prohibits further seals and, if `is_read_only`, writing by anything but the present mappings:
/// even by root.
pub(super) fn seal(file: &OwnedFd, is_read_only: bool) -> io::Result<()> {
    let write = if is_read_only { SealFlags::FUTURE_WRITE } else { SealFlags::empty() };
    Ok(rustix::fs::fcntl_add_seals(file, write | SealFlags::SEAL)?)
}

/// Stores `bytes` from word `start` on. Bytes without room are dropped.
pub(super) fn store_bytes(words: &[AtomicU64], start: usize, bytes: &[u8]) {
    let words = words.get(start..).unwrap_or_default();
    for (word, bytes) in words.iter().zip(bytes.chunks(WORD)) {
        let mut value = [0; WORD];
        value[..bytes.len()].copy_from_slice(bytes);
        word.store(u64::from_ne_bytes(value), Ordering::Relaxed);
    }
}

/// Returns a copy of `length` bytes from byte `offset` on, a multiple of 8; `None` if they are not
/// all there.
pub(super) fn load_bytes(words: &[AtomicU64], offset: usize, length: usize) -> Option<Vec<u8>> {
    let start = offset / WORD;
    let part = words.get(start..start.checked_add(length.div_ceil(WORD))?)?;
    let mut bytes: Vec<u8> =
        part.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
    bytes.truncate(length);
    offset.is_multiple_of(WORD).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use rustix::fs::FallocateFlags;

    use super::*;

    #[test]
    fn a_sealed_file_cannot_be_changed_through_its_descriptor() {
        let (file, mapping) = create("punctual-unit", 8192).unwrap();
        seal(&file, true).unwrap();
        mapping.words()[3].store(7, Ordering::Relaxed);
        let theirs = Mapping::new(file.as_fd(), 8192, Access::Read).unwrap();
        assert_eq!(theirs.words()[3].load(Ordering::Relaxed), 7);
        Mapping::new(file.as_fd(), 8192, Access::ReadWrite).unwrap_err();
        rustix::io::pwrite(&file, &[1], 0).unwrap_err();
        rustix::fs::ftruncate(&file, 0).unwrap_err();
        rustix::fs::ftruncate(&file, 16384).unwrap_err();
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&file, hole, 0, 4096).unwrap_err();
    }

    #[test]
    fn rejects_a_file_that_may_become_shorter() {
        let file = rustix::fs::memfd_create("punctual-unit", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&file, 4096).unwrap();
        Mapping::new(file.as_fd(), 4096, Access::Read).unwrap_err();
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
        Mapping::new(file.as_fd(), 4096, Access::Read).unwrap();
        Mapping::new(file.as_fd(), 8192, Access::Read).unwrap_err();
    }

    #[test]
    fn stores_and_loads_bytes_of_every_length() {
        let words: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(u64::MAX)).collect();
        let bytes: Vec<u8> = (1..=24).collect();
        for length in 0..=24 {
            store_bytes(&words, 1, &bytes[..length]);
            assert_eq!(load_bytes(&words, 8, length).unwrap(), bytes[..length]);
        }
        for (offset, length) in [(8, 25), (32, 1), (4, 4), (usize::MAX - 7, 8), (8, usize::MAX)] {
            assert_eq!(load_bytes(&words, offset, length), None, "{offset} {length}");
        }
    }
}
