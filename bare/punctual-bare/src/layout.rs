//! Where the linker has put what. The names are those of `link.ld`.

use core::ops::Range;

pub(crate) use crate::linked::{PAGE, Stack, image_start, is_code, program_end, text_end};

/// How many bytes are mapped by pages, from a multiple of 2 MiB on. The image and the stacks lie within.
pub(crate) const PAGED: usize = 0x40_0000;

symbols! {
    __rodata_end as rodata_end;
    __stacks_start as stacks_start;
    __stacks_end as stacks_end;
    __stack_size as stack_size;
    __fault_stack_size as fault_stack_size;
}

/// What a page holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    /// Instructions.
    Code,
    /// What is not written.
    Constants,
    /// Everything else.
    Data,
    /// Nothing may be here.
    Guard,
}

/// Where what is mapped by pages begins.
pub(crate) fn paged() -> usize {
    image_start() & !0x1F_FFFF
}

/// Whether an address is in what is mapped by pages.
pub(crate) fn is_paged(address: usize) -> bool {
    (paged()..paged() + PAGED).contains(&address)
}

/// What the page at this address holds.
pub(crate) fn page(address: usize) -> Page {
    if address == 0 {
        Page::Guard
    } else if (image_start()..text_end()).contains(&address) {
        Page::Code
    } else if (text_end()..rodata_end()).contains(&address) {
        Page::Constants
    } else if guard(address).is_some() {
        Page::Guard
    } else {
        Page::Data
    }
}

/// The bytes of each core's stacks with their guard pages.
fn stride() -> usize {
    2 * PAGE + fault_stack_size() + stack_size()
}

/// The core and the stack whose guard page an address is in.
pub(crate) fn guard(address: usize) -> Option<(usize, Stack)> {
    let offset = stacks().contains(&address).then(|| address - stacks_start())?;
    let (core, offset) = (offset / stride(), offset % stride());
    match offset {
        _ if offset < PAGE => Some((core, Stack::Fault)),
        _ if (fault_stack_size() + PAGE..fault_stack_size() + 2 * PAGE).contains(&offset) => {
            Some((core, Stack::Main))
        }
        _ => None,
    }
}

/// All stacks of all cores.
pub(crate) fn stacks() -> Range<usize> {
    stacks_start()..stacks_end()
}
