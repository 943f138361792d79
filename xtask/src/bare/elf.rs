//! The content of an executable: the bytes that are loaded, and the names of its functions.

use std::fs;
use std::path::Path;

use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};

use super::board::Board;
use super::errata;
use crate::Result;

/// An executable.
#[derive(Default)]
pub(super) struct Elf {
    /// The address of loading and entry.
    pub(super) origin: u64,
    /// The bytes loaded at that address.
    pub(super) image: Vec<u8>,
    /// The bytes from that address to the end of all memory the program uses, including stacks and
    /// zeroed statics.
    pub(super) memory: u64,
    /// The bytes of the stacks among these.
    pub(super) stacks: u64,
    /// Functions by address, with their sizes.
    pub(super) functions: Vec<(u64, u64, String)>,
    /// The end of the instructions, which begin at the origin.
    pub(super) code_end: u64,
    /// Room for instructions that replace others.
    pub(super) veneers: Option<(u64, u64)>,
    /// The addresses from which there are instructions (or data), in order. Empty if unknown.
    pub(super) mapping: Vec<(u64, bool)>,
}

impl Elf {
    /// Reads an executable for a board, with the board's errata worked around.
    pub(super) fn for_board(board: Board, path: &Path) -> Result<Self> {
        let mut elf = Self::read(path)?;
        errata::fix(board, &mut elf).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(elf)
    }

    /// Reads an executable. It must begin with its entry point, because an image does not record
    /// the entry point.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let file = object::File::parse(&*bytes)?;
        let mut loaded = Vec::new();
        let mut end = 0;
        for segment in file.segments() {
            end = end.max(segment.address() + segment.size());
            loaded.push((segment.address(), segment.data()?));
        }
        loaded.retain(|(_, data)| !data.is_empty());
        let (origin, image) = flatten(loaded)?;
        if file.entry() != origin {
            let entry = file.entry();
            return Err(
                format!("{} begins at {origin:#x} but is entered at {entry:#x}", path.display()).into()
            );
        }
        let mut functions: Vec<_> = file
            .symbols()
            .filter(|symbol| matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Label))
            .filter_map(|symbol| Some((symbol.address(), symbol.size(), demangle(symbol.name().ok()?))))
            .filter(|(_, size, _)| *size > 0)
            .collect();
        functions.sort();
        // The symbols of the linker script of punctual-bare.
        let symbol = |name| file.symbol_by_name(name).map(|symbol| symbol.address());
        let stacks = symbol("__stacks_end").zip(symbol("__stacks_start")).map(|(end, start)| end - start);
        let stacks = stacks.ok_or_else(|| format!("{} does not define its stacks", path.display()))?;
        let veneers = symbol("__veneers_start").zip(symbol("__veneers_end"));
        let code_end = veneers.map_or(origin, |(start, _)| start);
        // Mapping symbols: `$x` and `$a` begin instructions, `$d` begins data.
        let mut mapping: Vec<(u64, bool)> = file
            .symbols()
            .filter_map(|symbol| {
                let kind = symbol.name().ok()?.strip_prefix('$')?.chars().next()?;
                matches!(kind, 'x' | 'a' | 'd').then_some((symbol.address(), kind != 'd'))
            })
            .collect();
        mapping.sort_unstable();
        Ok(Self { origin, image, memory: end - origin, stacks, functions, code_end, veneers, mapping })
    }

    /// Returns whether there is an instruction at an address of the image.
    pub(super) fn is_instruction(&self, address: u64) -> bool {
        let next = self.mapping.partition_point(|(start, _)| *start <= address);
        next.checked_sub(1).is_none_or(|last| self.mapping[last].1)
    }

    /// Returns the word at an address of the image.
    pub(super) fn word(&self, address: u64) -> u32 {
        let offset = (address - self.origin) as usize;
        u32::from_le_bytes(self.image[offset..offset + 4].try_into().expect("four bytes"))
    }

    /// Changes the word at an address of the image.
    pub(super) fn set_word(&mut self, address: u64, word: u32) {
        let offset = (address - self.origin) as usize;
        self.image[offset..offset + 4].copy_from_slice(&word.to_le_bytes());
    }

    /// Returns a text with the sizes.
    pub(super) fn sizes(&self) -> String {
        let kib = |bytes: u64| bytes.div_ceil(1024);
        let (memory, stacks) = (kib(self.memory), kib(self.stacks));
        format!("image of {} bytes, RAM of {memory} KiB, {stacks} KiB of it stacks", self.image.len())
    }

    /// Returns the function of the instruction before an address. For a return address, this
    /// instruction is the call.
    pub(super) fn function_before(&self, address: u64) -> Option<&str> {
        let address = address.checked_sub(1)?;
        let next = self.functions.partition_point(|(start, ..)| *start <= address);
        let (start, size, name) = self.functions.get(next.checked_sub(1)?)?;
        (address - start < *size).then_some(name)
    }
}

/// Returns the lowest address and the bytes from the lowest address to the highest.
fn flatten(mut loaded: Vec<(u64, &[u8])>) -> Result<(u64, Vec<u8>)> {
    loaded.sort_by_key(|(address, _)| *address);
    let origin = loaded.first().ok_or("there is nothing in it to load")?.0;
    let mut image = Vec::new();
    for (address, data) in loaded {
        let offset = usize::try_from(address - origin)?;
        if offset < image.len() {
            return Err(format!("the segment at {address:#x} overlaps with the previous one").into());
        }
        image.resize(offset, 0);
        image.extend_from_slice(data);
    }
    Ok((origin, image))
}

/// Returns the path of a function from a name in either of Rust's manglings; returns any other name
/// unchanged.
fn demangle(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_gaps_between_segments_with_zeros() {
        let loaded: Vec<(u64, &[u8])> = vec![(0x8004, &[3, 4]), (0x8000, &[1, 2])];
        assert_eq!(flatten(loaded).unwrap(), (0x8000, vec![1, 2, 0, 0, 3, 4]));
        assert!(flatten(vec![(0, &[1, 2][..]), (1, &[3][..])]).is_err());
        assert!(flatten(vec![]).is_err());
    }

    #[test]
    fn reports_image_and_memory_sizes() {
        let elf = Elf { origin: 0, image: vec![0; 1500], memory: 5000, stacks: 4096, ..Elf::default() };
        assert_eq!(elf.sizes(), "image of 1500 bytes, RAM of 5 KiB, 4 KiB of it stacks");
    }

    #[test]
    fn attributes_return_address_at_function_end_to_caller() {
        let functions = vec![(0x100, 0x10, "a".to_owned()), (0x110, 0x10, "b".to_owned())];
        let elf = Elf { origin: 0x100, image: vec![], memory: 0x20, functions, ..Elf::default() };
        assert_eq!(elf.function_before(0x110), Some("a"));
        assert_eq!(elf.function_before(0x114), Some("b"));
        assert_eq!(elf.function_before(0x100), None);
        assert_eq!(elf.function_before(0x121), None);
    }
}
