//! The stacks of threads.

use core::cell::{Cell, UnsafeCell};
use core::mem::MaybeUninit;

use crate::kernel::{CANARY, PATTERN, Section};
use crate::{Port, SpawnError};

/// A stack of `SIZE` bytes, for one thread after the other.
///
/// Where the port has [guards](Port::GUARDED), a page lies below that nobody can access. Elsewhere the lowest word keeps a value that is
/// looked at whenever the thread is switched from, and if it has changed, the port's [`fault`](Port::fault) is called. That is no
/// protection, since by then something may be overwritten that lies below.
#[repr(C, align(16))]
pub struct Stack<P: Port, const SIZE: usize> {
    /// Next to the bytes, since its size is a multiple of 16.
    guard: P::Guard,
    bytes: UnsafeCell<[MaybeUninit<u8>; SIZE]>,
    in_use: Cell<bool>,
    is_painted: Cell<bool>,
    pub(crate) home: P::Home,
}

// SAFETY: the guard is given to the port alone; the flags are accessed with interrupts masked, on the one core or thread that the port lets in; the bytes by the
// thread that runs on them, and by others once that has ended or, to look for what it has left untouched, as raw memory.
unsafe impl<P: Port, const SIZE: usize> Sync for Stack<P, SIZE> {}

impl<P: Port, const SIZE: usize> Stack<P, SIZE> {
    /// A stack that nobody uses.
    pub const fn new() -> Self {
        const { assert!(size_of::<P::Guard>().is_multiple_of(16), "there is no gap above a guard") };
        assert!(SIZE.is_multiple_of(16) && SIZE >= 64, "the size of a stack is a multiple of 16");
        Self {
            guard: P::GUARD,
            bytes: UnsafeCell::new([MaybeUninit::uninit(); SIZE]),
            in_use: Cell::new(false),
            is_painted: Cell::new(false),
            home: P::HOME,
        }
    }

    /// Fills the stack with a pattern, which takes time in proportion to its size. The first spawn on it does so otherwise.
    ///
    /// # Errors
    /// [`SpawnError::StackInUse`] if a thread runs on it.
    pub fn prepare(&'static self) -> Result<(), SpawnError> {
        {
            let _section = Section::<P>::enter(&self.home);
            if self.in_use.replace(true) {
                return Err(SpawnError::StackInUse);
            }
        }
        // SAFETY: all of the bytes, which are nobody's: `in_use` keeps everybody else off.
        unsafe { self.bytes.get().cast::<u8>().write_bytes(PATTERN, SIZE) };
        P::guard(&self.guard);
        let _section = Section::<P>::enter(&self.home);
        self.is_painted.set(true);
        self.in_use.set(false);
        Ok(())
    }

    /// How many bytes have been used at most, by all threads that have run on this stack. It takes time in proportion to
    /// what has not been used. Bytes that a thread has reserved and not written do not count.
    pub fn high_water(&'static self) -> usize {
        {
            let _section = Section::<P>::enter(&self.home);
            if !self.is_painted.get() {
                return 0;
            }
        }
        let words = SIZE / size_of::<usize>();
        // SAFETY: within the bytes. Volatile, and the value only compared, since a thread may write there meanwhile: it runs
        // on the same core or thread of the operating system, so no access is torn.
        let untouched = (0..words).take_while(|&i| unsafe { self.words().add(i).read_volatile() } == CANARY);
        SIZE - untouched.count() * size_of::<usize>()
    }

    fn words(&self) -> *mut usize {
        self.bytes.get().cast()
    }

    /// Claims the stack. Called with interrupts masked.
    #[inline]
    pub(crate) fn claim(&'static self) -> bool {
        !self.in_use.replace(true)
    }

    #[inline]
    pub(crate) fn is_painted(&self) -> bool {
        self.is_painted.get()
    }

    /// The flag to be cleared when the thread has ended, the lowest word and the upper end.
    #[inline]
    pub(crate) fn parts(&'static self) -> (&'static Cell<bool>, *const usize, *mut u8) {
        // SAFETY: one past the last byte.
        let top = unsafe { self.bytes.get().cast::<u8>().add(SIZE) };
        (&self.in_use, self.words(), top)
    }
}

impl<P: Port, const SIZE: usize> Default for Stack<P, SIZE> {
    fn default() -> Self {
        Self::new()
    }
}
