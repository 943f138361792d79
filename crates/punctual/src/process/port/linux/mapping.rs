//! Memory mappings: of a file, to be shared with other processes, private, or without access.

use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags};

/// A mapping. Unmapped on drop: references into it have to be dropped first.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread; `Mapping` only unmaps it.
unsafe impl Send for Mapping {}
// SAFETY: a reference to it only gives its address.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps a file of that length, or zeroed memory, fully resident from the start.
    pub(crate) fn new(length: usize, file: Option<BorrowedFd<'_>>) -> io::Result<Self> {
        let (access, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe {
            match file {
                Some(file) => rustix::mm::mmap(std::ptr::null_mut(), length, access, shared, file, 0),
                None => rustix::mm::mmap_anonymous(std::ptr::null_mut(), length, access, shared),
            }
        }?;
        Self::at(start, length)
    }

    /// Reserves `length` bytes of address space that are never touched, and that count only against
    /// the limit on address space.
    pub(super) fn reserve(length: usize) -> io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start =
            unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), length, ProtFlags::empty(), flags) }?;
        Self::at(start, length)
    }

    fn at(start: *mut c_void, length: usize) -> io::Result<Self> {
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at 0"))?;
        Ok(Self { start, length })
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped at its creation, and by the contract of the type nothing points into it.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast::<c_void>(), self.length) };
    }
}
