//! The linker's placement of sections. The names are those of `link.ld`.

use core::ops::Range;

pub(crate) use crate::linked::{PAGE, Stack, image_start, is_code, program_end, text_end};

/// Number of bytes mapped by pages, from a multiple of 2 MiB on. The image and the stacks lie
/// within.
pub(crate) const PAGED: usize = 0x40_0000;

symbols! {
    __rodata_end as rodata_end;
    __stacks_start as stacks_start;
    __stacks_end as stacks_end;
    __stack_size as stack_size;
    __fault_stack_size as fault_stack_size;
}

/// The content of a page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    /// Instructions.
    Code,
    /// Read-only data.
    Constants,
    /// Everything else.
    Data,
    /// Not accessible.
    Guard,
}

/// Returns the start of the range mapped by pages.
pub(crate) fn paged() -> usize {
    image_start() & !0x1F_FFFF
}

/// Returns whether an address is in the range mapped by pages.
pub(crate) fn is_paged(address: usize) -> bool {
    (paged()..paged() + PAGED).contains(&address)
}

/// Returns the content of the page at this address.
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

/// Returns the size of each core's stacks with their guard pages, in bytes.
fn stride() -> usize {
    2 * PAGE + fault_stack_size() + stack_size()
}

/// Returns the core and the stack whose guard page contains an address.
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

/// Returns the range of all stacks of all cores.
pub(crate) fn stacks() -> Range<usize> {
    stacks_start()..stacks_end()
}
