//! The MMU, with a granule of 4 KiB and 4 GiB of address space: blocks of 2 MiB, and pages around
//! the image.
//!
//! *Arm Architecture Reference Manual for A-profile architecture*, D8.3.

use core::arch::asm;
use core::cell::UnsafeCell;

use aarch64_cpu::asm::barrier;
use aarch64_cpu::registers::{MAIR_EL1, ReadWriteable, SCTLR_EL1, TCR_EL1, TTBR0_EL1, Writeable};

use crate::board::{self, Kind, Standalone, This};
use crate::cores::StartCores;
use crate::layout::{self, PAGE, PAGED, Page};

const GIB: usize = 1 << 30;
const BLOCK: usize = 2 << 20;
const GIBS: usize = 4;
const PAGE_TABLES: usize = PAGED / BLOCK;

#[repr(C, align(4096))]
#[derive(Clone, Copy)]
struct Table([u64; 512]);

#[repr(C, align(4096))]
struct Tables {
    /// Entries of 1 GiB; only the first few are used.
    gibs: Table,
    /// Entries of 2 MiB.
    blocks: [Table; GIBS],
    /// Entries of 4 KiB.
    pages: [Table; PAGE_TABLES],
    /// Entries of 4 KiB from [`start_table`] on. Only the first entry is used.
    start: Table,
}

struct Shared(UnsafeCell<Tables>);

// SAFETY: `enable` writes to it while no other core runs. After that, `forbid` writes whole words,
// always the same value.
unsafe impl Sync for Shared {}

static TABLES: Shared = {
    let empty = Table([0; 512]);
    Shared(UnsafeCell::new(Tables {
        gibs: empty,
        blocks: [empty; GIBS],
        pages: [empty; PAGE_TABLES],
        start: empty,
    }))
};

/// The attributes of a descriptor.
mod attributes {
    const VALID: u64 = 1;
    /// A table, or in the last level, a page.
    pub(super) const TABLE: u64 = VALID | 1 << 1;
    const ACCESSED: u64 = 1 << 10;
    const INNER_SHAREABLE: u64 = 0b11 << 8;
    const READ_ONLY: u64 = 1 << 7;
    const NEVER_EXECUTE: u64 = 1 << 53 | 1 << 54;
    /// Index into `MAIR_EL1`.
    const DEVICE: u64 = 1 << 2;

    /// Memory, in a block.
    pub(super) const MEMORY: u64 = VALID | ACCESSED | INNER_SHAREABLE | NEVER_EXECUTE;
    /// Devices, in a block.
    pub(super) const DEVICES: u64 = VALID | ACCESSED | DEVICE | NEVER_EXECUTE;
    pub(super) const CODE: u64 = TABLE | ACCESSED | INNER_SHAREABLE | READ_ONLY | 1 << 54;
    pub(super) const CONSTANTS: u64 = TABLE | MEMORY | READ_ONLY;
    pub(super) const DATA: u64 = TABLE | MEMORY;
}

fn entry(address: usize) -> *mut u64 {
    let page = (address - layout::paged()) / PAGE;
    // SAFETY: the address is within the tables, which are one array of words.
    unsafe { (&raw mut (*TABLES.0.get()).pages) }.cast::<u64>().wrapping_add(page)
}

/// Unmaps a page on all cores.
///
/// # Safety
/// The page is in the range mapped by pages, the MMU is on, and nothing relies on the page.
pub(crate) unsafe fn forbid(address: usize) {
    // SAFETY: the entry exists, by this function's contract, and the write of a word is atomic.
    // Cached data of the page may be written to memory at any time, but nothing reads that memory.
    unsafe {
        entry(address).write_volatile(0);
        // In the inner shareable domain, which contains all cores: also those that have been
        // started, and those that turn their MMU on later, which see the new entry.
        asm!("dsb ishst", "tlbi vaae1is, {}", "dsb ish", "isb", in(reg) address >> 12, options(nostack));
    }
}

/// Returns the address at which [`StartCores::TABLE`] is mapped: behind the memory. The page is not
/// mapped at its own address, so that null pointers are faults.
pub(crate) fn start_table() -> usize {
    This::RAM.end
}

/// Returns whether a page in the range mapped by pages is inaccessible.
pub(crate) fn is_forbidden(address: usize) -> bool {
    // SAFETY: the entry exists if the address is mapped by pages.
    layout::is_paged(address) && unsafe { entry(address).read_volatile() } == 0
}

/// Maps memory and devices one to one and enables the MMU and the caches.
///
/// # Safety
/// The MMU is off, the caches are empty, and no other core runs.
pub(crate) unsafe fn enable() {
    // SAFETY: nothing else uses the tables, by this function's contract.
    let Tables { gibs, blocks, pages, start } = unsafe { &mut *TABLES.0.get() };
    for (i, table) in blocks.iter_mut().enumerate() {
        for (j, entry) in table.0.iter_mut().enumerate() {
            let address = i * GIB + j * BLOCK;
            *entry = match board::kind(address, BLOCK) {
                Some(Kind::Memory) => address as u64 | attributes::MEMORY,
                Some(Kind::Device) => address as u64 | attributes::DEVICES,
                None => 0,
            };
        }
    }
    for (i, table) in pages.iter_mut().enumerate() {
        let base = layout::paged() + i * BLOCK;
        for (j, entry) in table.0.iter_mut().enumerate() {
            let address = base + j * PAGE;
            *entry = match layout::page(address) {
                Page::Code => address as u64 | attributes::CODE,
                Page::Constants => address as u64 | attributes::CONSTANTS,
                Page::Data => address as u64 | attributes::DATA,
                Page::Guard => 0,
            };
        }
        blocks[base / GIB].0[base % GIB / BLOCK] = (&raw const *table).addr() as u64 | attributes::TABLE;
    }
    if let Some(table) = <This as Standalone>::Cores::TABLE {
        start.0[0] = table as u64 | attributes::DATA;
        blocks[start_table() / GIB].0[start_table() % GIB / BLOCK] =
            (&raw const *start).addr() as u64 | attributes::TABLE;
    }
    for (entry, table) in gibs.0.iter_mut().zip(&*blocks) {
        *entry = (&raw const *table).addr() as u64 | attributes::TABLE;
    }
    // SAFETY: the MMU is off, by this function's contract, and the tables have been built.
    unsafe { turn_on() };
}

/// Enables the MMU and the caches of this core.
///
/// # Safety
/// Both are off, and core 0 has [built](enable) the tables.
pub(crate) unsafe fn turn_on() {
    MAIR_EL1.write(
        MAIR_EL1::Attr0_Normal_Outer::WriteBack_NonTransient_ReadWriteAlloc
            + MAIR_EL1::Attr0_Normal_Inner::WriteBack_NonTransient_ReadWriteAlloc
            + MAIR_EL1::Attr1_Device::nonGathering_nonReordering_EarlyWriteAck,
    );
    TCR_EL1.write(
        TCR_EL1::T0SZ.val(32)
            + TCR_EL1::TG0::KiB_4
            + TCR_EL1::SH0::Inner
            + TCR_EL1::IRGN0::WriteBack_ReadAlloc_WriteAlloc_Cacheable
            + TCR_EL1::ORGN0::WriteBack_ReadAlloc_WriteAlloc_Cacheable
            + TCR_EL1::EPD1::DisableTTBR1Walks
            + TCR_EL1::IPS::Bits_32,
    );
    TTBR0_EL1.set(TABLES.0.get().addr() as u64);
    // SAFETY: discards cached translations, which are stale, and cached instructions, which are
    // fetched again.
    unsafe { asm!("ic iallu", "tlbi vmalle1", "dsb sy", "isb", options(nostack)) };
    // The core has taken part in coherency since its reset, or since the firmware enabled it. The
    // tables map everything that the program uses to its physical address.
    SCTLR_EL1.modify(SCTLR_EL1::M::Enable + SCTLR_EL1::C::Cacheable + SCTLR_EL1::I::Cacheable);
    barrier::isb(barrier::SY);
}
