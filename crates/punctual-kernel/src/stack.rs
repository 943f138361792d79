//! The stacks of threads.

use core::cell::{Cell, UnsafeCell};
use core::mem::MaybeUninit;

use crate::kernel::{CANARY, PATTERN, Section};
use crate::{Port, SpawnError};

/// The use of a stack.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Unused, without the fill pattern.
    Raw,
    /// Being filled with the pattern.
    Filling,
    /// Unused.
    Free,
    /// Used by a thread that has not ended.
    Taken,
}

/// A stack of `SIZE` bytes, for one thread after the other.
///
/// If the port has [guards](Port::GUARDED), an inaccessible page lies below it. Otherwise the
/// lowest word holds a canary that is checked whenever the kernel switches away from the thread; if
/// it has changed, the port's [`fault`](Port::fault) is called. The canary is not a protection,
/// since memory below the stack may be overwritten by then.
#[repr(C, align(16))]
pub struct Stack<P: Port, const SIZE: usize> {
    /// Adjacent to the bytes, since its size is a multiple of 16.
    guard: P::Guard,
    bytes: UnsafeCell<[MaybeUninit<u8>; SIZE]>,
    pub(crate) state: Cell<Use>,
    pub(crate) home: P::Home,
}

// SAFETY: the guard is passed to the port only; the flags are accessed with interrupts masked, on
// the one core or thread that the port admits; the bytes by the thread that runs on them, and by
// others once that has ended or, to find the untouched ones, as raw memory.
unsafe impl<P: Port, const SIZE: usize> Sync for Stack<P, SIZE> {}

impl<P: Port, const SIZE: usize> Stack<P, SIZE> {
    /// Creates an unused stack.
    pub const fn new() -> Self {
        const { assert!(size_of::<P::Guard>().is_multiple_of(16), "a guard's size is a multiple of 16") };
        assert!(SIZE.is_multiple_of(16) && SIZE >= 64, "the size of a stack is a multiple of 16");
        Self {
            guard: P::GUARD,
            bytes: UnsafeCell::new([MaybeUninit::uninit(); SIZE]),
            state: Cell::new(Use::Raw),
            home: P::HOME,
        }
    }

    /// Fills the stack with a pattern, which takes time in proportion to its size. Otherwise the
    /// first spawn on it does so.
    ///
    /// # Errors
    /// [`SpawnError::StackInUse`] if a thread runs on it.
    pub fn prepare(&'static self) -> Result<(), SpawnError> {
        {
            let _section = Section::<P>::enter(&self.home);
            if matches!(self.state.get(), Use::Filling | Use::Taken) {
                return Err(SpawnError::StackInUse);
            }
            self.state.set(Use::Filling);
        }
        // SAFETY: all of the bytes, which are unused: the state excludes other users.
        unsafe { self.bytes.get().cast::<u8>().write_bytes(PATTERN, SIZE) };
        P::guard(&self.guard);
        let _section = Section::<P>::enter(&self.home);
        self.state.set(Use::Free);
        Ok(())
    }

    /// Returns the maximum number of bytes used by all threads that have run on this stack. Takes
    /// time in proportion to the unused part. Bytes that a thread has reserved and not written do
    /// not count.
    pub fn high_water(&'static self) -> usize {
        {
            let _section = Section::<P>::enter(&self.home);
            if matches!(self.state.get(), Use::Raw | Use::Filling) {
                return 0;
            }
        }
        let words = SIZE / size_of::<usize>();
        // SAFETY: within the bytes. Volatile, and the value only compared, since a thread may write
        // there concurrently: it runs on the same core or thread of the operating system, so no
        // access is torn.
        let untouched = (0..words).take_while(|&i| unsafe { self.words().add(i).read_volatile() } == CANARY);
        SIZE - untouched.count() * size_of::<usize>()
    }

    fn words(&self) -> *mut usize {
        self.bytes.get().cast()
    }

    /// Returns the address of the lowest word, the canary.
    #[inline]
    pub(crate) fn canary(&'static self) -> *const usize {
        self.words()
    }

    /// Returns the upper end.
    #[inline]
    pub(crate) fn top(&'static self) -> *mut u8 {
        // SAFETY: one past the last byte.
        unsafe { self.bytes.get().cast::<u8>().add(SIZE) }
    }
}

impl<P: Port, const SIZE: usize> Default for Stack<P, SIZE> {
    fn default() -> Self {
        Self::new()
    }
}
