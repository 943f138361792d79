//! Placing a structure in memory that several processes have mapped.
//!
//! One process calls [`init_at`], the others call [`attach_at`]. The structure starts with a header
//! that describes it; a process built for another layout gets a [`LayoutError`] with the expected
//! and the found value. The caller maps the memory (`shm_open`, `memfd_create`, a file in
//! `/dev/shm`) and keeps it mapped; addresses may differ from process to process.
//!
//! Real-time safety: both are for start-up. They neither allocate nor block, but touch every page
//! they use.
//!
//! ```
//! use punctual_sync::shared::{Ring, attach_at, init_at, region_size};
//!
//! type Samples = Ring<u32, 16>;
//!
//! // Stands for a mapping; `u128` and the spare bytes make room for the alignment.
//! let mut memory = vec![0_u128; region_size::<Samples>() / 16 + 8];
//! let start = memory.as_mut_ptr().cast::<u8>();
//! let pad = start.align_offset(128);
//! let (start, len) = (start.wrapping_add(pad), memory.len() * 16 - pad);
//!
//! // SAFETY: the memory outlives both references and has no other user.
//! let mine: &Samples = unsafe { init_at(start, len, ()) }.unwrap();
//! mine.producer().unwrap().push(17).unwrap();
//!
//! // SAFETY: as above; the memory was initialized by `init_at`.
//! let theirs: &Samples = unsafe { attach_at(start, len) }.unwrap();
//! assert_eq!(theirs.consumer().unwrap().pop(), Some(17));
//!
//! // SAFETY: as above.
//! let error = unsafe { attach_at::<Ring<u64, 16>>(start, len) }.unwrap_err();
//! assert!(error.to_string().contains("expected"));
//! ```

use core::any::type_name;
use core::fmt;

use bytemuck::{AnyBitPattern, NoUninit};

use crate::atomic::{AtomicU32, Ordering};

/// "PNCT", read as a little-endian number.
const MAGIC: u32 = u32::from_le_bytes(*b"PNCT");

/// The version of the header and of every structure; incremented with each change to either.
const VERSION: u32 = 3;

/// Values that may be shared between processes: every bit pattern is valid and there is no padding,
/// so there are no pointers whose target the other process lacks.
///
/// Implemented for all types that are [`bytemuck::AnyBitPattern`] and [`bytemuck::NoUninit`]:
/// numbers, arrays of them, and structures that derive `bytemuck::Pod`. The user is responsible for
/// integers that represent addresses.
///
/// # Safety
/// The type has the properties in the first sentence.
pub unsafe trait Plain: Copy + Send + 'static {}

// SAFETY: `AnyBitPattern` promises that every bit pattern is valid, which excludes references;
// `NoUninit` promises that there is no padding, and is not implemented for raw pointers.
unsafe impl<T: AnyBitPattern + NoUninit + Send> Plain for T {}

/// Structures that can be placed in shared memory.
///
/// # Safety
/// The type is `repr(C)`, holds no pointers, and is sound when several processes use one instance
/// through shared references. `write` initializes it. `KIND` is unique among all types.
pub unsafe trait Shareable: Sized + Sync {
    /// Identifies the structure.
    const KIND: u32;
    /// The capacity in elements or threads, if the type has one. Padding hides it from the size.
    const CAPACITY: usize = 0;
    /// The type of its elements; `()` if there are none.
    type Element;
    /// The argument of its initialization.
    type Init;

    /// Initializes the structure in place, so that a large structure never occupies a stack.
    ///
    /// # Safety
    /// `this` is valid for writes, aligned, all zero, and not used by any other thread.
    unsafe fn write(this: *mut Self, init: Self::Init);
}

/// A property described by the header and compared by [`attach_at`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayoutField {
    /// The mark of an initialized region; 0 if there is none.
    Magic,
    /// The version of this crate's layouts.
    Version,
    /// The kind of structure.
    Kind,
    /// The capacity in elements or threads.
    Capacity,
    /// The structure's size in bytes.
    Size,
    /// The structure's alignment in bytes.
    Align,
    /// The element's size in bytes.
    ElementSize,
    /// The element's alignment in bytes.
    ElementAlign,
    /// A hash of the name of the element's type.
    ElementType,
    /// The number of bytes mapped: at least `expected`.
    Length,
    /// The address: a multiple of `expected`; `found` is the remainder.
    Address,
}

/// A region does not have the layout that the caller was built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayoutError {
    /// The first difference.
    pub field: LayoutField,
    /// The value that this program needs.
    pub expected: u64,
    /// The value in the region.
    pub found: u64,
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, expected, found } = *self;
        match field {
            LayoutField::Magic => {
                write!(f, "no initialized region: expected magic {expected:#x}, found {found:#x}")
            }
            LayoutField::Version => write!(f, "version: expected {expected}, found {found}"),
            LayoutField::Kind => write!(f, "structure: expected kind {expected}, found {found}"),
            LayoutField::Capacity => write!(f, "capacity: expected {expected}, found {found}"),
            LayoutField::Size => write!(f, "size: expected {expected} bytes, found {found}"),
            LayoutField::Align => write!(f, "alignment: expected {expected} bytes, found {found}"),
            LayoutField::ElementSize => {
                write!(f, "size of an element: expected {expected} bytes, found {found}")
            }
            LayoutField::ElementAlign => {
                write!(f, "alignment of an element: expected {expected} bytes, found {found}")
            }
            LayoutField::ElementType => {
                write!(f, "type of an element: expected hash {expected:#018x}, found {found:#018x}")
            }
            LayoutField::Length => write!(f, "mapping: expected at least {expected} bytes, found {found}"),
            LayoutField::Address => {
                write!(f, "address: expected a multiple of {expected}, found a remainder of {found}")
            }
        }
    }
}

impl core::error::Error for LayoutError {}

/// Precedes every structure. The fields have fixed widths, so that any two programs agree on the
/// layout.
#[repr(C)]
struct Header {
    /// Written last, so that a region under initialization is rejected.
    magic: AtomicU32,
    version: u32,
    kind: u32,
    element_align: u32,
    capacity: u64,
    size: u64,
    align: u64,
    element_size: u64,
    element_type: u64,
}

#[repr(C)]
struct Placed<T> {
    header: Header,
    body: T,
}

impl Header {
    fn of<T: Shareable>() -> Self {
        Self {
            magic: AtomicU32::new(0),
            version: VERSION,
            kind: T::KIND,
            element_align: align_of::<T::Element>() as u32,
            capacity: T::CAPACITY as u64,
            size: size_of::<T>() as u64,
            align: align_of::<T>() as u64,
            element_size: size_of::<T::Element>() as u64,
            element_type: hash(type_name::<T::Element>()),
        }
    }

    fn check(&self, found: &Self) -> Result<(), LayoutError> {
        use LayoutField::{Align, Capacity, ElementAlign, ElementSize, ElementType, Kind, Size, Version};

        // The version comes first: it determines the meaning of the other fields.
        let fields = [
            (Version, self.version.into(), found.version.into()),
            (Kind, self.kind.into(), found.kind.into()),
            (ElementSize, self.element_size, found.element_size),
            (ElementAlign, self.element_align.into(), found.element_align.into()),
            (ElementType, self.element_type, found.element_type),
            (Capacity, self.capacity, found.capacity),
            (Size, self.size, found.size),
            (Align, self.align, found.align),
        ];
        fields.into_iter().try_for_each(|(field, expected, found)| {
            if expected == found { Ok(()) } else { Err(LayoutError { field, expected, found }) }
        })
    }
}

/// FNV-1a (Fowler, Noll, Vo). The same name gives the same hash in every program, unlike `TypeId`.
const fn hash(name: &str) -> u64 {
    let (bytes, mut hash, mut i) = (name.as_bytes(), 0xcbf2_9ce4_8422_2325, 0);
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    hash
}

/// Returns the number of bytes that a structure and its header need.
pub const fn region_size<T: Shareable>() -> usize {
    size_of::<Placed<T>>()
}

/// Returns the alignment that a region needs, in bytes. A mapping of whole pages always has it.
pub const fn region_align<T: Shareable>() -> usize {
    align_of::<Placed<T>>()
}

fn place<T: Shareable>(start: *mut u8, len: usize) -> Result<*mut Placed<T>, LayoutError> {
    let misalignment = start.addr() % region_align::<T>();
    if misalignment != 0 {
        let (expected, found) = (region_align::<T>() as u64, misalignment as u64);
        return Err(LayoutError { field: LayoutField::Address, expected, found });
    }
    if len < region_size::<T>() {
        let (expected, found) = (region_size::<T>() as u64, len as u64);
        return Err(LayoutError { field: LayoutField::Length, expected, found });
    }
    Ok(start.cast())
}

/// Creates a structure at the start of a region, overwriting its contents.
///
/// # Errors
/// A [`LayoutError`] if the region is too small or not aligned.
///
/// # Safety
/// `start` is valid for reads and writes of `len` bytes for `'a`. No thread of any process uses the
/// region while this runs, or ever again through an older attachment. During `'a` every process
/// uses the region only through the references that this function and [`attach_at`] return.
pub unsafe fn init_at<'a, T: Shareable>(
    start: *mut u8,
    len: usize,
    init: T::Init,
) -> Result<&'a T, LayoutError> {
    let placed = place::<T>(start, len)?;
    // SAFETY: `place` checked size and alignment; the caller guarantees that the memory is valid
    // and unused. The body is zeroed before `write`, as its contract requires, and initialized
    // after it.
    unsafe {
        placed.write_bytes(0, 1);
        (&raw mut (*placed).header).write(Header::of::<T>());
        T::write(&raw mut (*placed).body, init);
        // Release: a thread that sees the magic number sees the rest.
        (*placed).header.magic.store(MAGIC, Ordering::Release);
        Ok(&(*placed).body)
    }
}

/// Returns the structure that [`init_at`] created, in this process or another.
///
/// # Errors
/// A [`LayoutError`] if the region is too small, not aligned, not initialized, or holds another
/// structure. Element types are compared by the name that the compiler gives them, so processes
/// should get an element's type from one crate, and be built by one compiler if it is generic. A
/// field that changes its meaning but not its size goes undetected.
///
/// # Safety
/// `start` is valid for reads and writes of `len` bytes for `'a`. If the region begins with the
/// magic number, then [`init_at`] put it there, and during `'a` every process uses the region only
/// through the references that these functions return.
pub unsafe fn attach_at<'a, T: Shareable>(start: *mut u8, len: usize) -> Result<&'a T, LayoutError> {
    let placed = place::<T>(start, len)?;
    // SAFETY: `place` checked size and alignment, and the caller guarantees that the memory is
    // valid. Every bit pattern is a valid header. The magic number is atomic, and the header is not
    // written after it.
    let magic = unsafe { (*placed).header.magic.load(Ordering::Acquire) };
    if magic != MAGIC {
        return Err(LayoutError { field: LayoutField::Magic, expected: MAGIC.into(), found: magic.into() });
    }
    // SAFETY: as above; once the magic number is written, the header is not changed.
    Header::of::<T>().check(unsafe { &(*placed).header })?;
    // SAFETY: by its header the body is an initialized `T` of this layout with this element type;
    // all uses go through shared references, for which `Shareable` makes it sound.
    Ok(unsafe { &(*placed).body })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The reference values published by the authors.
    #[test]
    fn hash_is_stable_across_programs() {
        let hashes = ["", "a", "foobar"].map(hash);
        assert_eq!(hashes, [0xcbf2_9ce4_8422_2325, 0xaf63_dc4c_8601_ec8c, 0x8594_4171_f739_67e8]);
    }
}
