//! The MMU, with short descriptors: sections of 1 MiB, and pages of 4 KiB around the image.
//!
//! *ARM Architecture Reference Manual, ARMv7-A and ARMv7-R edition*, B3.5.

use core::arch::asm;
use core::cell::UnsafeCell;

use crate::board::{self, Kind};
use crate::layout::{self, PAGE, PAGED, Page};

const SECTION: usize = 1 << 20;
const PAGE_TABLES: usize = PAGED / SECTION;

#[repr(C, align(16384))]
struct Sections(UnsafeCell<[u32; 4096]>);

#[repr(C, align(1024))]
struct PageTable([u32; SECTION / PAGE]);

#[repr(C)]
struct Pages(UnsafeCell<[PageTable; PAGE_TABLES]>);

// SAFETY: `enable` writes to it while no other core runs.
unsafe impl Sync for Sections {}
// SAFETY: as above; after that, `forbid` writes whole words, always the same value.
unsafe impl Sync for Pages {}

static SECTIONS: Sections = Sections(UnsafeCell::new([0; 4096]));
static PAGES: Pages = Pages(UnsafeCell::new([const { PageTable([0; SECTION / PAGE]) }; PAGE_TABLES]));

/// Descriptors of sections: privileged access only, domain 0.
mod section {
    const SECTION: u32 = 0b10;
    const NEVER_EXECUTE: u32 = 1 << 4;
    const READ_WRITE: u32 = 0b01 << 10;
    /// TEX 0b001, C and B: normal memory, write-back, allocated on reads and writes; shareable.
    const CACHED: u32 = 0b001 << 12 | 1 << 3 | 1 << 2 | 1 << 16;
    /// TEX 0b000 and B: shareable device.
    const SHARED_DEVICE: u32 = 1 << 2;

    pub(super) const MEMORY: u32 = SECTION | NEVER_EXECUTE | READ_WRITE | CACHED;
    pub(super) const DEVICE: u32 = SECTION | NEVER_EXECUTE | READ_WRITE | SHARED_DEVICE;
    pub(super) const TABLE: u32 = 0b01;
}

/// Descriptors of pages: privileged access only, in the domain of their table.
mod page {
    const SMALL_PAGE: u32 = 0b10;
    const NEVER_EXECUTE: u32 = 1;
    const READ_WRITE: u32 = 0b01 << 4;
    const READ_ONLY: u32 = 1 << 9 | READ_WRITE;
    const CACHED: u32 = 0b001 << 6 | 1 << 3 | 1 << 2 | 1 << 10;

    pub(super) const CODE: u32 = SMALL_PAGE | READ_ONLY | CACHED;
    pub(super) const CONSTANTS: u32 = SMALL_PAGE | NEVER_EXECUTE | READ_ONLY | CACHED;
    pub(super) const DATA: u32 = SMALL_PAGE | NEVER_EXECUTE | READ_WRITE | CACHED;
    pub(super) const NONE: u32 = 0;
}

fn entry(address: usize) -> *mut u32 {
    let page = (address - layout::paged()) / PAGE;
    // The tables are one array.
    PAGES.0.get().cast::<u32>().wrapping_add(page)
}

/// Unmaps a page on all cores.
///
/// # Safety
/// The page is in the range mapped by pages, the MMU is on, and nothing relies on the page.
pub(crate) unsafe fn forbid(address: usize) {
    // SAFETY: the entry exists, by this function's contract, and the write of a word is atomic.
    // Cached data of the page may be written to memory at any time, but nothing reads that memory.
    unsafe {
        entry(address).write_volatile(page::NONE);
        // TLBIMVAAIS, in the inner shareable domain, which contains all cores: also those that have
        // been started, and those that turn their MMU on later, which see the new entry.
        asm!(
            "dsb ish",
            "mcr p15, 0, {}, c8, c3, 3",
            "mcr p15, 0, {zero}, c7, c1, 6", // BPIALLIS
            "dsb ish",
            "isb",
            in(reg) address,
            zero = in(reg) 0,
            options(nostack),
        );
    }
}

/// Returns whether a page in the range mapped by pages is inaccessible.
pub(crate) fn is_forbidden(address: usize) -> bool {
    // SAFETY: the entry exists if the address is mapped by pages.
    layout::is_paged(address) && unsafe { entry(address).read_volatile() } == page::NONE
}

/// Maps memory and devices one to one and enables the MMU and the caches.
///
/// # Safety
/// The MMU is off, the caches are empty, and no other core runs.
pub(crate) unsafe fn enable() {
    // SAFETY: nothing else uses the tables, by this function's contract.
    let (sections, pages) = unsafe { (&mut *SECTIONS.0.get(), &mut *PAGES.0.get()) };
    for (i, entry) in sections.iter_mut().enumerate() {
        let address = i * SECTION;
        *entry = match board::kind(address, SECTION) {
            Some(Kind::Memory) => address as u32 | section::MEMORY,
            Some(Kind::Device) => address as u32 | section::DEVICE,
            None => 0,
        };
    }
    for (i, table) in pages.iter_mut().enumerate() {
        let base = layout::paged() + i * SECTION;
        for (j, entry) in table.0.iter_mut().enumerate() {
            let address = base + j * PAGE;
            *entry = match layout::page(address) {
                Page::Code => address as u32 | page::CODE,
                Page::Constants => address as u32 | page::CONSTANTS,
                Page::Data => address as u32 | page::DATA,
                Page::Guard => page::NONE,
            };
        }
        sections[base / SECTION] = (&raw const *table).addr() as u32 | section::TABLE;
    }
    // SAFETY: the MMU is off, by this function's contract, and the tables have been built.
    unsafe { turn_on() };
}

/// Enables the MMU and the caches of this core.
///
/// # Safety
/// Both are off, and core 0 has [built](enable) the tables.
pub(crate) unsafe fn turn_on() {
    // Table walks are cached like all other accesses.
    const WALKS: u32 = 1 << 6 | 0b01 << 3 | 1 << 1;
    let tables = SECTIONS.0.get().addr() as u32 | WALKS;
    // SAFETY: the tables map everything that the program uses to its physical address. Caches,
    // predictors and TLB are empty when the MMU is enabled: the core has cleared the caches at its
    // reset, and this code clears the others.
    unsafe {
        asm!(
            // The core must take part in coherency, because otherwise neither caches nor exclusive
            // accesses are defined. Outside of the secure state, the write may have no effect; the
            // firmware has set the bit then.
            "mrc p15, 0, {t}, c1, c0, 1",
            "tst {t}, #0x40",
            "orreq {t}, {t}, #0x40",
            "mcreq p15, 0, {t}, c1, c0, 1",
            "mcr p15, 0, {zero}, c7, c5, 0",    // ICIALLU
            "mcr p15, 0, {zero}, c7, c5, 6",    // BPIALL
            "mcr p15, 0, {zero}, c8, c7, 0",    // TLBIALL
            "mcr p15, 0, {zero}, c2, c0, 2",    // TTBCR: TTBR0 for all addresses
            "mcr p15, 0, {tables}, c2, c0, 0",  // TTBR0
            "mcr p15, 0, {one}, c3, c0, 0",     // DACR: domain 0 as in the tables
            "dsb",
            "isb",
            "mrc p15, 0, {t}, c1, c0, 0",
            "orr {t}, {t}, #0x5",               // SCTLR: M, C
            "orr {t}, {t}, #0x1800",            // Z, I
            "mcr p15, 0, {t}, c1, c0, 0",
            "dsb",
            "isb",
            t = out(reg) _,
            zero = in(reg) 0,
            one = in(reg) 1,
            tables = in(reg) tables,
            options(nostack),
        );
    }
}
