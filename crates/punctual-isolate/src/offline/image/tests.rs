use super::*;

const BASE: u64 = 0x4820_0000;
const PLACE: Place = Place { base: BASE, devices: [(0x0800_0000, 0x1000), (0x080A_0000, 0x2_0000)] };

/// A program with code, data with one relocation, and a stack behind a guard page.
fn file() -> Vec<u8> {
    let mut file = vec![0; 0x3000];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"\x7fELF\x02\x01");
    put(16, &[3, 0, 183, 0]);
    put(32, &64_u64.to_le_bytes());
    put(54, &[56, 0, 4, 0]);
    let headers: [[u64; 6]; 4] = [
        [1, 5, 0x1000, 0x8_0000, 0x1000, 0x1000],
        [1, 6, 0x2000, 0x8_1000, 0x200, 0x200],
        [1, 6, 0x3000, 0x8_B000, 0, 0x2000],
        [2, 6, 0x2100, 0x8_1100, 0x40, 0x40],
    ];
    for (i, [kind, flags, offset, address, filled, all]) in headers.into_iter().enumerate() {
        let at = 64 + 56 * i;
        put(at, &(kind | flags << 32).to_le_bytes());
        put(at + 8, &offset.to_le_bytes());
        put(at + 16, &address.to_le_bytes());
        put(at + 32, &filled.to_le_bytes());
        put(at + 40, &all.to_le_bytes());
    }
    put(0x1000, &MAGIC.to_le_bytes());
    put(0x1008, &VERSION.to_le_bytes());
    put(0x1010, &0x8_2000_u64.to_le_bytes());
    for (i, value) in [7, 0x8_1080, 8, 24, 0, 0_u64].into_iter().enumerate() {
        put(0x2100 + 8 * i, &value.to_le_bytes());
    }
    for (i, value) in [0x8_1000, 0x403, 0x8_0123_u64].into_iter().enumerate() {
        put(0x2080 + 8 * i, &value.to_le_bytes());
    }
    file
}

/// Returns the descriptor of a page.
fn entry(placed: &[u8], address: u64) -> u64 {
    let mut table = 0x8_2000 - SHARED;
    for shift in [30, 21] {
        let next = number::<8>(placed, table + (address >> shift & 511) as usize * 8).unwrap();
        if next == 0 {
            return 0;
        }
        table = ((next & !0xFFF) - BASE) as usize - SHARED;
    }
    number::<8>(placed, table + (address >> 12 & 511) as usize * 8).unwrap()
}

#[test]
fn relocates_image_to_memory_block() {
    let placed = Image::read(&file()).unwrap().placed(&PLACE).unwrap();
    assert_eq!(placed.len(), BLOCK - SHARED);
    assert_eq!(number::<8>(&placed, 0x1000).unwrap(), BASE + 0x8_0123);
    assert_eq!(number::<8>(&placed, 0).unwrap(), MAGIC);
}

#[test]
fn maps_segments_with_minimal_permissions() {
    let placed = Image::read(&file()).unwrap().placed(&PLACE).unwrap();
    let of = |offset: u64| entry(&placed, BASE + offset);
    assert_eq!(of(0), BASE | MEMORY);
    assert_eq!(of(0x8_0000), (BASE + 0x8_0000) | CODE);
    assert_eq!(of(0x8_1000), (BASE + 0x8_1000) | MEMORY);
    // The tables, and the guard page below the stack.
    assert_eq!([of(0x8_2000), of(0x8_A000)], [0, 0]);
    assert_eq!(of(0x8_C000), (BASE + 0x8_C000) | MEMORY);
    assert_eq!(of(0x1F_F000), (BASE + 0x1F_F000) | MEMORY);
    assert_eq!(entry(&placed, BASE + BLOCK as u64), 0);
    assert_eq!(entry(&placed, 0x0800_0000), 0x0800_0000 | DEVICE);
    assert_eq!(entry(&placed, 0x0800_1000), 0);
    assert_eq!(entry(&placed, 0x080B_F000), 0x080B_F000 | DEVICE);
}

#[test]
fn error_explains_invalid_image() {
    let changed = |at: usize, bytes: &[u8]| {
        let mut file = file();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        Image::read(&file).and_then(|image| image.placed(&PLACE)).unwrap_err()
    };
    assert_eq!(Image::read(b"#!/bin/sh\n").unwrap_err(), ImageError::Foreign("not a 64-bit ELF file"));
    assert_eq!(changed(18, &[62]), ImageError::Foreign("not for 64-bit ARM"));
    assert_eq!(changed(16, &[2]), ImageError::Foreign("not relocatable"));
    assert_eq!(changed(0x1008, &[9]), ImageError::Version(9));
    assert_eq!(changed(0x1000, &[9]), ImageError::Foreign("no image header"));
    assert_eq!(changed(64 + 16, &[0, 0, 0x20]), ImageError::Foreign("a segment outside of its block"));
    assert_eq!(changed(64 + 4, &[7]), ImageError::Foreign("writable code"));
    assert_eq!(changed(0x1010, &[0, 0, 0x20]), ImageError::Damaged("page tables outside of the image"));
    assert_eq!(changed(0x2080, &[0xFF; 4]), ImageError::Damaged("a relocation outside of the image"));
    assert_eq!(changed(0x2088, &[1]), ImageError::Foreign("requires a library"));
}

#[test]
fn rejects_corrupt_files_without_panic() {
    let whole = file();
    for length in 0..0x300 {
        let _ = Image::read(&whole[..length]);
    }
    // Every byte of the headers, of the image's own and of its relocations, at its extremes.
    for at in (0..0x120).chain(0x1000..0x1018).chain(0x2080..0x2140) {
        for byte in [0, 1, 0x7F, 0xFF] {
            let mut file = whole.clone();
            file[at] = byte;
            if let Ok(image) = Image::read(&file) {
                let _ = image.placed(&PLACE);
            }
        }
    }
}

#[test]
fn rejects_dynamic_section_at_end_of_address_space() {
    let mut file = file();
    let at = 64 + 56 * 3 + 16;
    file[at..at + 8].copy_from_slice(&(u64::MAX - 3).to_le_bytes());
    assert_eq!(Image::read(&file).unwrap_err(), ImageError::Damaged("an offset out of range"));
}
