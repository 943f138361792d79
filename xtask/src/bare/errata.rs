//! Errata of processors that an image has to work around.
//!
//! Cortex-A53 erratum 835769: a 64-bit multiply-accumulate directly after a load or a store may
//! compute a wrong result. As GNU ld does with `--fix-cortex-a53-835769`, which lld lacks, each
//! such instruction becomes a branch to a copy of it, followed by a branch back. So `core`, which
//! other compilers have built, is covered as well.

use super::board::Board;
use super::elf::Elf;
use crate::Result;

/// The erratum's name in the table of boards.
const A53_835769: &str = "cortex-a53-835769";

/// The size of an instruction in bytes.
const SIZE: u64 = 4;

/// Works around the errata of a board.
pub(super) fn fix(board: Board, elf: &mut Elf) -> Result {
    if board.has_erratum(A53_835769) {
        fix_a53_835769(elf)?;
    }
    Ok(())
}

fn fix_a53_835769(elf: &mut Elf) -> Result {
    let (mut next, end) =
        elf.veneers.ok_or("the program has no room for veneers: it needs the current link.ld")?;
    for address in affected(elf) {
        if next + 2 * SIZE > end {
            return Err(format!(
                "Cortex-A53 erratum 835769 affects more instructions than there are veneers in {:#x}..{end:#x}: \
                 enlarge __veneers in link.ld",
                elf.origin
            )
            .into());
        }
        let instruction = elf.word(address);
        elf.set_word(next, instruction);
        elf.set_word(next + SIZE, branch(next + SIZE, address + SIZE));
        elf.set_word(address, branch(address, next));
        next += 2 * SIZE;
    }
    match affected(elf).first() {
        None => Ok(()),
        Some(address) => Err(format!("the instruction at {address:#x} is still affected").into()),
    }
}

/// Returns the addresses of the multiply-accumulate instructions that the erratum affects.
fn affected(elf: &Elf) -> Vec<u64> {
    let addresses = (elf.origin + SIZE..elf.code_end).step_by(SIZE as usize);
    addresses
        .filter(|&address| {
            elf.is_instruction(address)
                && is_multiply_accumulate(elf.word(address))
                && is_memory_access(elf.word(address - SIZE))
        })
        .collect()
}

/// MADD, MSUB, SMADDL, SMSUBL, UMADDL and UMSUBL of 64 bits that add to a register. *Arm
/// Architecture Reference Manual for A-profile architecture*, C4.1, "Data-processing (3 source)".
fn is_multiply_accumulate(instruction: u32) -> bool {
    let operation = instruction >> 21 & 0b111;
    let accumulator = instruction >> 10 & 0x1F;
    instruction >> 24 == 0x9B && matches!(operation, 0b000 | 0b001 | 0b101) && accumulator != 31
}

/// The group "Loads and Stores" of the same table.
fn is_memory_access(instruction: u32) -> bool {
    instruction >> 25 & 0b101 == 0b100
}

/// Returns the instruction that branches between two addresses.
fn branch(from: u64, to: u64) -> u32 {
    let words = (to as i64 - from as i64) / SIZE as i64;
    0x1400_0000 | words as u32 & 0x03FF_FFFF
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: u32 = 0xF940_0021; // ldr x1, [x1]
    const STORE_PAIR: u32 = 0xA901_0BE1; // stp x1, x2, [sp, #16]
    const ADD: u32 = 0x8B02_0020; // add x0, x1, x2
    const MULTIPLY_ADD: u32 = 0x9B02_0C20; // madd x0, x1, x2, x3
    const MULTIPLY: u32 = 0x9B02_7C20; // mul x0, x1, x2
    const UNSIGNED_LONG: u32 = 0x9BA2_0C20; // umaddl x0, w1, w2, x3
    const HIGH_HALF: u32 = 0x9BC2_7C20; // umulh x0, x1, x2

    const ORIGIN: u64 = 0x8_0000;

    fn elf(code: &[u32]) -> Elf {
        let code_end = ORIGIN + 4 * code.len() as u64;
        let mut image: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        image.extend([0; 16]);
        Elf { origin: ORIGIN, image, code_end, veneers: Some((code_end, code_end + 16)), ..Elf::default() }
    }

    #[test]
    fn moves_a_multiply_accumulate_after_a_memory_access_to_a_veneer() {
        let mut elf = elf(&[ADD, LOAD, MULTIPLY_ADD, ADD, STORE_PAIR, UNSIGNED_LONG]);
        fix_a53_835769(&mut elf).unwrap();
        let words: Vec<u32> =
            elf.image.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        assert_eq!(words[..3], [ADD, LOAD, 0x1400_0004], "b to the first veneer, four words ahead");
        assert_eq!(words[3..6], [ADD, STORE_PAIR, 0x1400_0003]);
        assert_eq!(words[6..8], [MULTIPLY_ADD, 0x17FF_FFFC], "the veneer branches four words back");
        assert_eq!(words[8..], [UNSIGNED_LONG, 0x17FF_FFFD]);
    }

    #[test]
    fn leaves_other_instructions_alone() {
        let code = [ADD, MULTIPLY_ADD, LOAD, MULTIPLY, LOAD, HIGH_HALF, LOAD, ADD, UNSIGNED_LONG];
        let mut elf = elf(&code);
        let before = elf.image.clone();
        fix_a53_835769(&mut elf).unwrap();
        assert_eq!(elf.image, before);
    }

    #[test]
    fn leaves_data_between_instructions_alone() {
        let mut elf = elf(&[LOAD, MULTIPLY_ADD]);
        elf.mapping = vec![(ORIGIN, true), (ORIGIN + 4, false)];
        let before = elf.image.clone();
        fix_a53_835769(&mut elf).unwrap();
        assert_eq!(elf.image, before);
    }

    #[test]
    fn reports_missing_room() {
        let mut elf = elf(&[LOAD, MULTIPLY_ADD, LOAD, MULTIPLY_ADD, LOAD, MULTIPLY_ADD]);
        let error = fix_a53_835769(&mut elf).unwrap_err().to_string();
        assert!(error.contains("enlarge __veneers"), "{error}");
    }
}
