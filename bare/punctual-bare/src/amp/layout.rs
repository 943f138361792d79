//! The linker's placement of sections. The names are those of `amp.ld`.

use crate::linked::PAGE;
pub(crate) use crate::linked::{Stack, image_start, is_code, program_end};

/// Offset of the image from the start of its block.
const IMAGE: usize = 0x8_0000;
/// The size of the block.
pub(crate) const BLOCK: usize = 0x20_0000;

symbols! {
    __fault_stack_start as fault_stack_start;
    __stack_start as stack_start;
    __stack_end as stack_end;
}

/// Returns the start of the block.
pub(crate) fn block() -> usize {
    image_start() - IMAGE
}

/// Returns the size of the stack of `main`.
pub(crate) fn stack_size() -> usize {
    stack_end() - stack_start()
}

/// Returns the core, by its number within the image, and the stack whose guard page contains an
/// address.
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

/// Returns the start of the stacks.
pub(crate) fn stacks_start() -> usize {
    fault_stack_start()
}

/// Returns the end of the stacks.
pub(crate) fn stacks_end() -> usize {
    stack_end()
}
