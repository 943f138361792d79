//! The stacks of threads.

use core::cell::{Cell, UnsafeCell};
use core::mem::MaybeUninit;

use crate::kernel::{CANARY, PATTERN, Section};
use crate::{Port, SpawnError};

/// What a stack is used for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// For nothing, and it has no pattern yet.
    Raw,
    /// It is being filled with the pattern.
    Filling,
    /// For nothing.
    Free,
    /// By a thread that has not ended.
    Taken,
}

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
    pub(crate) state: Cell<Use>,
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
            state: Cell::new(Use::Raw),
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
            if matches!(self.state.get(), Use::Filling | Use::Taken) {
                return Err(SpawnError::StackInUse);
            }
            self.state.set(Use::Filling);
        }
        // SAFETY: all of the bytes, which are nobody's: the state keeps everybody else off.
        unsafe { self.bytes.get().cast::<u8>().write_bytes(PATTERN, SIZE) };
        P::guard(&self.guard);
        let _section = Section::<P>::enter(&self.home);
        self.state.set(Use::Free);
        Ok(())
    }

    /// How many bytes have been used at most, by all threads that have run on this stack. It takes time in proportion to
    /// what has not been used. Bytes that a thread has reserved and not written do not count.
    pub fn high_water(&'static self) -> usize {
        {
            let _section = Section::<P>::enter(&self.home);
            if matches!(self.state.get(), Use::Raw | Use::Filling) {
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

    /// The lowest word, which keeps its value.
    #[inline]
    pub(crate) fn canary(&'static self) -> *const usize {
        self.words()
    }

    /// The upper end.
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
