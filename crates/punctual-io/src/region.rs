//! Memory of a device, mapped into the process.

use std::fs::{File, OpenOptions};
use std::marker::PhantomData;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags};
use safe_mmio::{SharedMmioPointer, UniqueMmioPointer};

use crate::Error;

/// A part of a device's memory, mapped until it is dropped.
///
/// The pages are mapped eagerly: an access causes neither a page fault nor a system call. If the
/// device is removed, the result depends on the bus: reads may return all ones, or the process may
/// receive SIGBUS.
#[derive(Debug)]
pub struct Region {
    /// Start of the first page.
    pages: NonNull<u8>,
    /// Bytes from there to the end of the region.
    mapped: usize,
    /// Bytes from the start of the first page to the region.
    before: usize,
}

// SAFETY: the mapping belongs to the process and not to a thread, and a shared reference only
// computes addresses in it.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Maps `length` bytes of physical memory at `address` through `/dev/mem`.
    ///
    /// For devices without another interface. Most kernels deny RAM and memory that a driver uses.
    ///
    /// # Safety
    /// The memory belongs to a device that has no other user. No value written to its registers
    /// makes the device write to memory of this process. Neither Rust nor the kernel uses the
    /// memory.
    ///
    /// # Errors
    /// Fails if `/dev/mem` cannot be opened or does not map this range.
    pub unsafe fn physical(address: u64, length: usize) -> Result<Self, Error> {
        let path = Path::new("/dev/mem");
        let memory = OpenOptions::new()
            .read(true)
            .write(true)
            // Maps the registers uncached.
            .custom_flags(libc::O_SYNC)
            .open(path)
            .map_err(Error::file(path, "it takes root (CAP_SYS_RAWIO); prefer UIO or a PCI function"))?;
        let fix = "the kernel maps no RAM and nothing that a driver claims (CONFIG_STRICT_DEVMEM); prefer UIO or a PCI function";
        Self::of(memory.as_fd(), path, address, length, fix)
    }

    /// Creates a region of ordinary memory filled with zeros, as a substitute for a device in
    /// tests.
    ///
    /// # Errors
    /// Fails if memory is exhausted, or if `length` is 0.
    pub fn of_memory(length: usize) -> Result<Self, Error> {
        let error = || Error::Range { address: 0, length: length as u64 };
        if length == 0 {
            return Err(error());
        }
        // SAFETY: a new mapping at an address chosen by the kernel overlaps no other mapping.
        let pages = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::POPULATE,
            )
        }
        .map_err(|_| error())?;
        let pages = NonNull::new(pages.cast()).ok_or_else(error)?;
        Ok(Self { pages, mapped: length, before: 0 })
    }

    /// Maps a part of a file, which need not start at a page boundary.
    pub(crate) fn of(
        file: BorrowedFd<'_>,
        path: &Path,
        address: u64,
        length: usize,
        fix: &'static str,
    ) -> Result<Self, Error> {
        let range = || Error::Range { address, length: length as u64 };
        let before = usize::try_from(address % rustix::param::page_size() as u64).map_err(|_| range())?;
        Self::within(file, path, address - before as u64, before, length, fix)
    }

    /// Maps `length` bytes of a file, starting `before` bytes after the page at `offset`.
    pub(crate) fn within(
        file: BorrowedFd<'_>,
        path: &Path,
        offset: u64,
        before: usize,
        length: usize,
        fix: &'static str,
    ) -> Result<Self, Error> {
        let range = || Error::Range { address: offset.saturating_add(before as u64), length: length as u64 };
        let mapped = before.checked_add(length).filter(|_| length != 0).ok_or_else(range)?;
        offset.checked_add(mapped as u64).filter(|&end| i64::try_from(end).is_ok()).ok_or_else(range)?;
        // SAFETY: a new mapping at an address chosen by the kernel overlaps no other mapping.
        let pages = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                mapped,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
                file,
                offset,
            )
        }
        .map_err(|error| Error::file(path, fix)(error.into()))?;
        let pages = NonNull::new(pages.cast()).ok_or_else(range)?;
        Ok(Self { pages, mapped, before })
    }

    /// Returns the length, in bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there are no empty regions")]
    pub fn len(&self) -> usize {
        self.mapped - self.before
    }

    /// Converts the region into the registers at `offset` bytes.
    ///
    /// `T` follows the layout in the device's manual: `repr(C)`, with fields from
    /// [`safe_mmio::fields`].
    ///
    /// # Errors
    /// Fails if the registers exceed the region or are not aligned as `T` requires.
    pub fn registers<T>(self, offset: usize) -> Result<Registers<T>, Error> {
        let first = self.place::<T>(offset)?;
        Ok(Registers { first, _region: self, _of: PhantomData })
    }

    /// Returns the address of a `T` at `offset` bytes.
    fn place<T>(&self, offset: usize) -> Result<NonNull<T>, Error> {
        let fits = offset.checked_add(mem::size_of::<T>()).is_some_and(|end| end <= self.len());
        // Pages are aligned for every register; a larger alignment is rejected too.
        let aligned = (self.pages.as_ptr().addr() + self.before)
            .wrapping_add(offset)
            .is_multiple_of(mem::align_of::<T>());
        if !fits || !aligned {
            return Err(Error::Misplaced {
                name: std::any::type_name::<T>(),
                size: mem::size_of::<T>(),
                align: mem::align_of::<T>(),
                offset,
                length: self.len(),
                start: self.before,
            });
        }
        // SAFETY: the region starts `before` bytes into the mapping, and the checks above keep
        // `offset` within it.
        Ok(unsafe { self.pages.add(self.before + offset) }.cast())
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the region was mapped with this length, and every user of an address in it
        // borrows from the region or owns it.
        let unmapped = unsafe { rustix::mm::munmap(self.pages.as_ptr().cast(), self.mapped) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

/// Registers of a device, laid out as `T`, with the region that contains them.
pub struct Registers<T> {
    first: NonNull<T>,
    _region: Region,
    _of: PhantomData<T>,
}

// SAFETY: the registers own their region, which any thread may use. An exclusive reference permits
// all accesses, and a shared one only those that do not change the device. Registers contain plain
// bits if `T` consists of fields; any other part of `T` must itself be `Send`.
unsafe impl<T: Send> Send for Registers<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Registers<T> {}

impl<T> std::fmt::Debug for Registers<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct(std::any::type_name::<Self>()).field("first", &self.first).finish_non_exhaustive()
    }
}

impl<T> Registers<T> {
    /// Returns a pointer for all accesses. [`safe_mmio::field!`] selects a field.
    pub fn get(&mut self) -> UniqueMmioPointer<'_, T> {
        // SAFETY: the pointer is aligned and within the mapping, which lives as long as `self`. It
        // is unique, because `self` is borrowed exclusively.
        unsafe { UniqueMmioPointer::new(self.first) }
    }

    /// Returns a pointer for accesses that do not change the device: reads of pure fields.
    /// [`safe_mmio::field_shared!`] selects a field.
    #[must_use]
    pub fn get_shared(&self) -> SharedMmioPointer<'_, T> {
        // SAFETY: as above, except that other shared pointers may exist. These permit only
        // operations that several threads may perform at once.
        unsafe { UniqueMmioPointer::new(self.first) }.into()
    }
}

/// Opens a file of a device for reading and writing.
pub(crate) fn open(path: &Path, flags: RawFd, fix: &'static str) -> Result<File, Error> {
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).map_err(Error::file(path, fix))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, SeekFrom, Write};

    use safe_mmio::fields::{ReadPureWrite, ReadWrite};
    use safe_mmio::{field, field_shared};

    use super::*;

    #[repr(C)]
    struct Pair {
        first: ReadPureWrite<u32>,
        second: ReadWrite<u32>,
    }

    /// Creates two pages in which each byte is its own position.
    fn device() -> File {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..8192_u32).map(|n| n as u8).collect();
        file.write_all(&bytes).unwrap();
        file
    }

    #[test]
    fn reads_and_writes_registers() {
        let mut file = device();
        let region = Region::of(file.as_fd(), Path::new("x"), 0, 8192, "").unwrap();
        assert_eq!(region.len(), 8192);
        let mut pair = region.registers::<Pair>(0x104).unwrap();
        let shared = pair.get_shared();
        assert_eq!(field_shared!(shared, first).read(), 0x0706_0504);
        let mut all = pair.get();
        assert_eq!(field!(all, second).read(), 0x0b0a_0908);
        field!(all, first).write(0xdead_beef);
        drop(pair);
        let mut bytes = [0; 4];
        file.seek(SeekFrom::Start(0x104)).unwrap();
        file.read_exact(&mut bytes).unwrap();
        assert_eq!(u32::from_ne_bytes(bytes), 0xdead_beef);
    }

    #[test]
    fn maps_unaligned_start() {
        let file = device();
        let region = Region::of(file.as_fd(), Path::new("x"), 4096 + 0x20, 0x10, "").unwrap();
        assert_eq!(region.len(), 0x10);
        let pair = region.registers::<Pair>(8).unwrap();
        let pair = pair.get_shared();
        assert_eq!(field_shared!(pair, first).read(), 0x2b2a_2928);
    }

    #[test]
    fn rejects_registers_outside_mapping() {
        for offset in [0x10 - 7, 0x10, usize::MAX, usize::MAX - 3, 2] {
            let error = Region::of_memory(0x10).unwrap().registers::<Pair>(offset).unwrap_err();
            assert!(matches!(error, Error::Misplaced { size: 8, align: 4, length: 0x10, .. }), "{error}");
        }
        Region::of_memory(0x10).unwrap().registers::<Pair>(8).unwrap();
    }

    #[test]
    fn rejects_unaddressable_regions() {
        let file = device();
        let of = |address, length| Region::of(file.as_fd(), Path::new("x"), address, length, "").unwrap_err();
        assert!(matches!(of(0, 0), Error::Range { .. }));
        assert!(matches!(of(u64::MAX, 1), Error::Range { .. }));
        assert!(matches!(of(8, usize::MAX), Error::Range { .. }));
        assert!(matches!(of(i64::MAX as u64, 1), Error::Range { .. }));
        assert!(matches!(Region::of_memory(0).unwrap_err(), Error::Range { .. }));
    }

    #[test]
    fn creates_no_missing_device() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("uio0");
        let error = open(&missing, 0, "do this").unwrap_err().to_string();
        assert!(error.contains("uio0: ") && error.ends_with("; do this"), "{error}");
        assert!(!missing.exists());
    }

    #[test]
    fn names_file_and_fix_if_it_cannot_be_mapped() {
        let (reader, _writer) = std::io::pipe().unwrap();
        let error =
            Region::of(reader.as_fd(), Path::new("/dev/pipe"), 0, 1, "do this").unwrap_err().to_string();
        assert!(error.starts_with("/dev/pipe: ") && error.ends_with("; do this"), "{error}");
    }
}
