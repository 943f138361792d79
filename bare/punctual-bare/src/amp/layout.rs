//! Where the linker has put what. The names are those of `amp.ld`.

use crate::linked::PAGE;
pub(crate) use crate::linked::{Stack, image_start, is_code, program_end};

/// How far the image is from the beginning of its block.
const IMAGE: usize = 0x8_0000;
/// The size of the block.
pub(crate) const BLOCK: usize = 0x20_0000;

symbols! {
    __fault_stack_start as fault_stack_start;
    __stack_start as stack_start;
    __stack_end as stack_end;
}

/// Where the block begins.
pub(crate) fn block() -> usize {
    image_start() - IMAGE
}

/// The size of the stack of `main`.
pub(crate) fn stack_size() -> usize {
    stack_end() - stack_start()
}

/// The core, by the number that it has within the image, and the stack whose guard page an address is in.
pub(crate) fn guard(address: usize) -> Option<(usize, Stack)> {
    let below = |start: usize| (start - PAGE..start).contains(&address);
    if below(stack_start()) {
        Some((0, Stack::Main))
    } else if below(fault_stack_start()) {
        Some((0, Stack::Fault))
    } else {
        None
    }
}

/// Where the stacks begin.
pub(crate) fn stacks_start() -> usize {
    fault_stack_start()
}

/// Where they end.
pub(crate) fn stacks_end() -> usize {
    stack_end()
}
