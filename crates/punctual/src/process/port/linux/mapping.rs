//! Memory mappings: of a file, to be shared with other processes, or private.

use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags};

/// A mapping, fully resident from the start. Unmapped on drop: references into it have to be
/// dropped first.
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
    /// Maps a file of that length, or zeroed memory.
    pub(crate) fn new(length: usize, file: Option<BorrowedFd<'_>>) -> io::Result<Self> {
        let (access, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe {
            match file {
                Some(file) => rustix::mm::mmap(std::ptr::null_mut(), length, access, shared, file, 0),
                None => rustix::mm::mmap_anonymous(std::ptr::null_mut(), length, access, shared),
            }
        }?;
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
        // SAFETY: mapped by `new`, and by the contract of the type nothing points into it anymore.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast::<c_void>(), self.length) };
    }
}
