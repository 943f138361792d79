//! Several structures in one region of shared memory.
//!
//! One side calls [`Arena::init`] for each structure, the other [`Arena::attach`], both in the same
//! order. So two programs agree on every place by agreeing on a list of types, each of which its
//! header checks.
//!
//! ```
//! use punctual_sync::shared::{Arena, Latest, Ring};
//!
//! #[repr(align(4096))]
//! struct Page([u8; 4096]);
//! // Stands for a mapping.
//! let start = Box::leak(Box::new(Page([0; 4096]))).0.as_mut_ptr();
//!
//! // SAFETY: the memory is never freed, and only arenas use it.
//! let (mut ours, mut theirs) = unsafe { (Arena::new(start, 4096), Arena::new(start, 4096)) };
//! let wanted = ours.init::<Latest<f32>>(0.5)?;
//! let answers = ours.init::<Ring<u32, 16>>(())?;
//!
//! assert_eq!(theirs.attach::<Latest<f32>>()?.reader().unwrap().read().value, 0.5);
//! answers.producer().unwrap().push(17).unwrap();
//! assert_eq!(theirs.attach::<Ring<u32, 16>>()?.consumer().unwrap().pop(), Some(17));
//! # Ok::<(), punctual_sync::shared::LayoutError>(())
//! ```

use super::region::{LayoutError, Shareable, attach_at, init_at, region_align, region_size};

/// Alignment of every place, independent of the structure: both sides find it, even if they
/// disagree on the structure there.
const ALIGN: usize = 128;

/// Hands out the places of a region one after the other.
#[derive(Debug)]
pub struct Arena {
    next: *mut u8,
    left: usize,
}

// SAFETY: the arena is an address and a size, and the memory is valid on every thread by the
// contract of `new`.
unsafe impl Send for Arena {}

impl Arena {
    /// An arena in `len` bytes at `start`.
    ///
    /// # Safety
    /// The memory is valid for reads and writes for the rest of the program. Every program uses it
    /// only through arenas that begin at the same byte, and each byte is zero before one of them
    /// calls [`init`](Self::init). No two arenas call `init`.
    pub const unsafe fn new(start: *mut u8, len: usize) -> Self {
        Self { next: start, left: len }
    }

    /// Makes a structure at the next place.
    ///
    /// Real-time safety: for start-up; it touches every page of the structure.
    ///
    /// # Errors
    /// A [`LayoutError`] if there is no room.
    pub fn init<T: Shareable>(&mut self, init: T::Init) -> Result<&'static T, LayoutError> {
        let (start, len) = self.place::<T>();
        // SAFETY: by the contract of `new` the memory is valid and only arenas use it. No other
        // arena has made a structure here, and this one never returns to a place, so nothing is
        // attached here before the magic number is written.
        let made = unsafe { init_at(start, len, init) }?;
        self.advance::<T>(start, len);
        Ok(made)
    }

    /// Finds the structure at the next place. The arena stays there after an error, so the call can
    /// be repeated until the other side has made the structure.
    ///
    /// # Errors
    /// A [`LayoutError`] if there is no room, no structure yet
    /// ([`LayoutField::Magic`](super::LayoutField::Magic)), or another one.
    pub fn attach<T: Shareable>(&mut self) -> Result<&'static T, LayoutError> {
        let (start, len) = self.place::<T>();
        // SAFETY: by the contract of `new` the memory is valid, was zero, and only arenas use it.
        // This arena has found the same structures before this place as the other side made, or it
        // would not be here, so the next place of both is this one: a magic number here was written
        // by `init_at`.
        let found = unsafe { attach_at(start, len) }?;
        self.advance::<T>(start, len);
        Ok(found)
    }

    /// The next place, and the bytes from there on.
    fn place<T: Shareable>(&self) -> (*mut u8, usize) {
        const { assert!(region_align::<T>() <= ALIGN, "the structure needs a larger alignment than an arena has") };
        let padding = (self.next.addr().next_multiple_of(ALIGN) - self.next.addr()).min(self.left);
        (self.next.wrapping_add(padding), self.left - padding)
    }

    fn advance<T: Shareable>(&mut self, start: *mut u8, len: usize) {
        self.next = start.wrapping_add(region_size::<T>());
        self.left = len - region_size::<T>();
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Inbox, Latest, LayoutField, Ring};
    use super::*;

    #[repr(C, align(4096))]
    struct Memory([u8; 8192]);

    fn arenas(len: usize) -> [Arena; 2] {
        let start = Box::leak(Box::new(Memory([0; 8192]))).0.as_mut_ptr();
        // SAFETY: the memory is never freed, zero, and used by these arenas alone, of which one
        // makes structures.
        [(); 2].map(|()| unsafe { Arena::new(start, len) })
    }

    #[test]
    fn attaches_objects_in_creation_order() {
        let [mut ours, mut theirs] = arenas(8192);
        assert_eq!(
            theirs.attach::<Latest<u8>>().unwrap_err().field,
            LayoutField::Magic,
            "nothing is there yet"
        );
        ours.init::<Latest<u8>>(7).unwrap();
        ours.init::<Inbox<[u32; 2], 8>>(()).unwrap().send([1, 2]).unwrap();
        assert_eq!(theirs.attach::<Latest<u8>>().unwrap().reader().unwrap().read().value, 7);
        let inbox = theirs.attach::<Inbox<[u32; 2], 8>>().unwrap();
        assert_eq!(inbox.drain(|message| assert_eq!(message, [1, 2])), 1);
    }

    #[test]
    fn rejects_other_types_and_keeps_position() {
        let [mut ours, mut theirs] = arenas(8192);
        ours.init::<Ring<u32, 16>>(()).unwrap();
        assert_eq!(theirs.attach::<Latest<u32>>().unwrap_err().field, LayoutField::Kind);
        assert_eq!(theirs.attach::<Ring<u32, 8>>().unwrap_err().field, LayoutField::Capacity);
        assert_eq!(theirs.attach::<Ring<f32, 16>>().unwrap_err().field, LayoutField::ElementType);
        assert!(theirs.attach::<Ring<u32, 16>>().is_ok());
    }

    #[test]
    fn rejects_regions_beyond_capacity() {
        let [mut ours, mut theirs] = arenas(region_size::<Ring<u32, 16>>());
        ours.init::<Ring<u32, 16>>(()).unwrap();
        assert_eq!(ours.init::<Latest<u8>>(0).unwrap_err().field, LayoutField::Length);
        theirs.attach::<Ring<u32, 16>>().unwrap();
        assert_eq!(theirs.attach::<Latest<u8>>().unwrap_err().field, LayoutField::Length);
    }
}
