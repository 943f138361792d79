//! An image for a CPU without Linux: read from the linker's output, relocated to its block of
//! memory, with page tables.
//!
//! *System V ABI*, 4.1 and *ELF for the Arm 64-bit Architecture*; *Arm Architecture Reference
//! Manual for A-profile architecture*, D8.3.

use super::layout::{BLOCK, MAGIC, SHARED, VERSION};

/// The reason a file is not a valid image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// Another kind of file, or for another processor.
    #[error(
        "not a program for a CPU without Linux ({0}): build it for the board `amp` of punctual-bare, with \
         -Crelocation-model=pic and -pie"
    )]
    Foreign(&'static str),
    /// The file is truncated, or contains an invalid offset.
    #[error("the image is damaged ({0}): rebuild it")]
    Damaged(&'static str),
    /// Built with another version of the layout.
    #[error("the image has layout version {0}, not {VERSION}: build it with the same release")]
    Version(u32),
}

/// The location of a running image.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The address of the block.
    pub(super) base: u64,
    /// The registers that it uses: start addresses and sizes.
    pub(super) devices: [(u64, u64); 2],
}

/// A part of an image.
#[derive(Debug)]
struct Segment {
    address: usize,
    size: usize,
    writable: bool,
    executable: bool,
}

/// A program for a CPU without Linux.
#[derive(Debug)]
pub struct Image {
    /// From the beginning of the block; bytes before [`SHARED`] are not used.
    bytes: Vec<u8>,
    segments: Vec<Segment>,
    /// The relocations: the offset of each, and the value to be added to the address of the block.
    relocations: Vec<(usize, u64)>,
    tables: usize,
}

const PAGE: usize = 4096;
/// The number of pages reserved for tables.
const TABLES: usize = 8;

/// Reads a little-endian number of a file.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Result<u64, ImageError> {
    let end = at.checked_add(N).ok_or(ImageError::Damaged("an offset out of range"))?;
    let part = bytes.get(at..end).ok_or(ImageError::Damaged("truncated"))?;
    Ok(part.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

fn size(value: u64) -> Result<usize, ImageError> {
    usize::try_from(value).map_err(|_| ImageError::Damaged("an offset out of range"))
}

impl Image {
    /// Reads a file.
    ///
    /// # Errors
    /// The file is not an image, or has another version.
    pub fn read(file: &[u8]) -> Result<Self, ImageError> {
        if !file.starts_with(b"\x7fELF\x02\x01") {
            return Err(ImageError::Foreign("not a 64-bit ELF file"));
        }
        if number::<2>(file, 18)? != 183 {
            return Err(ImageError::Foreign("not for 64-bit ARM"));
        }
        if number::<2>(file, 16)? != 3 {
            return Err(ImageError::Foreign("not relocatable"));
        }
        let mut image =
            Self { bytes: vec![0; BLOCK], segments: Vec::new(), relocations: Vec::new(), tables: 0 };
        let mut dynamic = None;
        let (headers, each, count) =
            (size(number::<8>(file, 32)?)?, size(number::<2>(file, 54)?)?, size(number::<2>(file, 56)?)?);
        for header in 0..count {
            let at = headers.saturating_add(header * each);
            let field = |offset: usize| number::<8>(file, at.saturating_add(offset)).and_then(size);
            let (kind, flags) = (number::<4>(file, at)?, number::<4>(file, at.saturating_add(4))?);
            let (offset, address, filled, all) = (field(8)?, field(16)?, field(32)?, field(40)?);
            match kind {
                1 => {
                    let end = address.checked_add(all).filter(|&end| end <= BLOCK && address >= SHARED);
                    if end.is_none() || filled > all || !address.is_multiple_of(PAGE) {
                        return Err(ImageError::Foreign("a segment outside of its block"));
                    }
                    let part = offset.checked_add(filled).and_then(|end| file.get(offset..end));
                    let part = part.ok_or(ImageError::Damaged("truncated"))?;
                    image.bytes[address..address + filled].copy_from_slice(part);
                    let (writable, executable) = (flags & 2 != 0, flags & 1 != 0);
                    image.segments.push(Segment { address, size: all, writable, executable });
                }
                2 => dynamic = Some((address, all)),
                _ => {}
            }
        }
        if number::<8>(&image.bytes, SHARED)? != MAGIC {
            return Err(ImageError::Foreign("no image header"));
        }
        match number::<4>(&image.bytes, SHARED + 8)? as u32 {
            VERSION => {}
            other => return Err(ImageError::Version(other)),
        }
        image.tables = size(number::<8>(&image.bytes, SHARED + 16)?)?;
        let end = image.tables.checked_add(TABLES * PAGE).filter(|&end| end <= BLOCK);
        if end.is_none() || image.tables < SHARED || !image.tables.is_multiple_of(PAGE) {
            return Err(ImageError::Damaged("page tables outside of the image"));
        }
        if let Some((address, all)) = dynamic {
            image.read_relocations(address, all)?;
        }
        Ok(image)
    }

    /// Reads the relocations from the dynamic section at `address`; the linker creates a single
    /// kind.
    fn read_relocations(&mut self, address: usize, all: usize) -> Result<(), ImageError> {
        const RELA: u64 = 7;
        const RELA_SIZE: u64 = 8;
        const RELATIVE: u64 = 0x403;
        let (mut table, mut length) = (0, 0);
        for at in (address..address.saturating_add(all)).step_by(16) {
            let value = size(number::<8>(&self.bytes, at.saturating_add(8))?)?;
            match number::<8>(&self.bytes, at)? {
                0 => break,
                RELA => table = value,
                RELA_SIZE => length = value,
                _ => {}
            }
        }
        for at in (table..table.saturating_add(length)).step_by(24) {
            let place = size(number::<8>(&self.bytes, at)?)?;
            if number::<8>(&self.bytes, at + 8)? != RELATIVE {
                return Err(ImageError::Foreign("requires a library"));
            }
            if !(SHARED..=BLOCK - 8).contains(&place) {
                return Err(ImageError::Damaged("a relocation outside of the image"));
            }
            self.relocations.push((place, number::<8>(&self.bytes, at + 16)?));
        }
        Ok(())
    }

    /// Returns the content of the block from [`SHARED`] on.
    pub(super) fn placed(&self, place: &Place) -> Result<Vec<u8>, ImageError> {
        let mut bytes = self.bytes.clone();
        for &(at, addend) in &self.relocations {
            bytes[at..at + 8].copy_from_slice(&place.base.wrapping_add(addend).to_le_bytes());
        }
        // Regardless of the segment's content.
        bytes[self.tables..self.tables + TABLES * PAGE].fill(0);
        let mut tables = Tables { bytes: &mut bytes, base: place.base, begin: self.tables, used: 1 };
        for page in (0..SHARED).step_by(PAGE) {
            tables.map(place.base + page as u64, MEMORY)?;
        }
        let mut last = SHARED;
        for segment in &self.segments {
            let attributes = match segment {
                Segment { writable: true, executable: true, .. } => {
                    return Err(ImageError::Foreign("writable code"));
                }
                Segment { executable: true, .. } => CODE,
                Segment { writable: true, .. } => MEMORY,
                Segment { .. } => CONSTANTS,
            };
            let end = (segment.address + segment.size).next_multiple_of(PAGE);
            for page in (segment.address..end).step_by(PAGE) {
                tables.map(place.base + page as u64, attributes)?;
            }
            last = last.max(end);
        }
        // The rest is memory for the program.
        for page in (last..BLOCK).step_by(PAGE) {
            tables.map(place.base + page as u64, MEMORY)?;
        }
        for (address, size) in place.devices {
            for page in (0..size).step_by(PAGE) {
                tables.map(address + page, DEVICE)?;
            }
        }
        bytes.drain(..SHARED);
        Ok(bytes)
    }
}

const VALID: u64 = 1;
const TABLE: u64 = VALID | 1 << 1;
const ACCESSED: u64 = 1 << 10;
const INNER_SHAREABLE: u64 = 0b11 << 8;
const READ_ONLY: u64 = 1 << 7;
const NEVER_EXECUTE: u64 = 1 << 53 | 1 << 54;

const MEMORY: u64 = TABLE | ACCESSED | INNER_SHAREABLE | NEVER_EXECUTE;
const CONSTANTS: u64 = MEMORY | READ_ONLY;
const CODE: u64 = TABLE | ACCESSED | INNER_SHAREABLE | READ_ONLY | 1 << 54;
/// The second memory type that the image's first instructions declare.
const DEVICE: u64 = TABLE | ACCESSED | NEVER_EXECUTE | 1 << 2;

/// Page tables with three levels and 39 address bits, with an identity mapping.
struct Tables<'a> {
    bytes: &'a mut [u8],
    base: u64,
    begin: usize,
    used: usize,
}

impl Tables<'_> {
    fn map(&mut self, address: u64, attributes: u64) -> Result<(), ImageError> {
        if address >> 39 != 0 {
            return Err(ImageError::Foreign("the machine's address is above 512 GB"));
        }
        let mut table = self.begin;
        for shift in [30, 21] {
            let entry = table + (address >> shift & 511) as usize * 8;
            let mut next = number::<8>(self.bytes, entry)?;
            if next == 0 {
                if self.used == TABLES {
                    return Err(ImageError::Damaged("too little space for page tables"));
                }
                next = (self.base + (self.begin + self.used * PAGE) as u64) | TABLE;
                self.used += 1;
                self.bytes[entry..entry + 8].copy_from_slice(&next.to_le_bytes());
            }
            table = ((next & !0xFFF) - self.base) as usize;
        }
        let entry = table + (address >> 12 & 511) as usize * 8;
        self.bytes[entry..entry + 8].copy_from_slice(&(address | attributes).to_le_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
