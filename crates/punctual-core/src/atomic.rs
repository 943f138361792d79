//! Atomics and cells from `core`, or from loom when the models are built.
//!
//! All state that this crate and `punctual-sync` share between threads uses these types, so that
//! `--cfg loom` replaces all of it. Not a public interface: it changes without notice.

#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicBool, AtomicIsize, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicBool, AtomicIsize, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub use loom::cell::UnsafeCell;

/// `core::cell::UnsafeCell` with loom's closure interface, which lets loom see every access.
#[cfg(not(loom))]
#[derive(Debug)]
#[repr(transparent)]
pub struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    /// Calls `f` with a pointer for reading; dereferencing it is up to unsafe code.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Calls `f` with a pointer for writing; dereferencing it is up to unsafe code.
    #[inline(always)]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// A 64-bit number in two 32-bit words; a reader may see words of two different numbers.
#[cfg(any(loom, not(target_pointer_width = "64")))]
#[derive(Debug)]
pub struct Split(pub(crate) [AtomicU32; 2]);

#[cfg(any(loom, not(target_pointer_width = "64")))]
impl Split {
    const_new! {
        /// Creates the number.
        pub fn new(number: u64) -> Self {
            Self([AtomicU32::new(number as u32), AtomicU32::new((number >> 32) as u32)])
        }
    }

    /// Returns the number.
    #[inline(always)]
    pub fn load(&self) -> u64 {
        let [low, high] = &self.0;
        u64::from(high.load(Ordering::Relaxed)) << 32 | u64::from(low.load(Ordering::Relaxed))
    }

    /// Replaces the number.
    #[inline(always)]
    pub fn store(&self, number: u64) {
        let [low, high] = &self.0;
        low.store(number as u32, Ordering::Relaxed);
        high.store((number >> 32) as u32, Ordering::Relaxed);
    }
}

/// A 64-bit number that is read and written without a data race, but possibly torn on 32-bit
/// machines: for data that one thread at a time uses, or that is validated by other means.
#[cfg(not(any(loom, target_pointer_width = "64")))]
pub type Halves = Split;

/// A 64-bit number that is read and written without a data race, but possibly torn on 32-bit
/// machines: for data that one thread at a time uses, or that is validated by other means.
#[cfg(any(loom, target_pointer_width = "64"))]
#[derive(Debug)]
pub struct Halves(AtomicU64);

#[cfg(any(loom, target_pointer_width = "64"))]
impl Halves {
    const_new! {
        /// Creates the number.
        pub fn new(number: u64) -> Self {
            Self(AtomicU64::new(number))
        }
    }

    /// Returns the number.
    #[inline(always)]
    pub fn load(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Replaces the number.
    #[inline(always)]
    pub fn store(&self, number: u64) {
        self.0.store(number, Ordering::Relaxed);
    }
}

/// Returns `true` if the number is 0.
// On x86-64 in memory: the compiler would load an atomic into a register first.
#[inline(always)]
pub(crate) fn is_zero(number: &AtomicU32) -> bool {
    // SAFETY: an atomic is loaded as a whole. The stack is not used.
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
    unsafe {
        core::arch::asm!(
            "cmp dword ptr [{number}], 0",
            "jne {other}",
            number = in(reg) number,
            other = label { return false },
            options(nostack, readonly),
        );
        true
    }
    #[cfg(not(all(target_arch = "x86_64", not(any(loom, miri)))))]
    {
        number.load(Ordering::Relaxed) == 0
    }
}

/// One iteration of a spinning wait.
#[inline(always)]
pub fn relax() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// Declares a constructor that is `const` except under loom, whose atomics are created at run time.
#[doc(hidden)]
#[macro_export]
macro_rules! const_new {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident : $ty:ty),* $(,)?) -> $ret:ty $body:block) => {
        $(#[$meta])*
        #[cfg(not(loom))]
        $vis const fn $name($($arg: $ty),*) -> $ret $body

        $(#[$meta])*
        #[cfg(loom)]
        $vis fn $name($($arg: $ty),*) -> $ret $body
    };
    ($(#[$meta:meta])* $vis:vis unsafe fn $name:ident($($arg:ident : $ty:ty),* $(,)?) -> $ret:ty $body:block) => {
        $(#[$meta])*
        #[cfg(not(loom))]
        $vis const unsafe fn $name($($arg: $ty),*) -> $ret $body

        $(#[$meta])*
        #[cfg(loom)]
        $vis unsafe fn $name($($arg: $ty),*) -> $ret $body
    };
}

/// Creates an array of equal elements, `const_array![element; length]`. It is constant except under
/// loom.
#[cfg(not(loom))]
#[doc(hidden)]
#[macro_export]
macro_rules! const_array {
    ($element:expr; $length:expr) => {
        [const { $element }; $length]
    };
}

#[cfg(loom)]
#[doc(hidden)]
#[macro_export]
macro_rules! const_array {
    ($element:expr; $length:expr) => {
        core::array::from_fn::<_, { $length }, _>(|_| $element)
    };
}

pub use crate::{const_array, const_new};
