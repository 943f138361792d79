//! Where the linker has put what. The names are those of `amp.ld`.

/// The size of a page.
const PAGE: usize = 0x1000;
/// How far the image is from the beginning of its block.
const IMAGE: usize = 0x8_0000;
/// The size of the block.
pub(crate) const BLOCK: usize = 0x20_0000;

macro_rules! symbols {
    ($($symbol:ident as $name:ident;)*) => {
        unsafe extern "C" {
            $(static $symbol: u8;)*
        }
        $(
            #[doc = concat!("`", stringify!($symbol), "` of `amp.ld`.")]
            pub(crate) fn $name() -> usize {
                (&raw const $symbol).addr()
            }
        )*
    };
}

symbols! {
    __image_start as image_start;
    __text_end as text_end;
    __bss_end as program_end;
    __fault_stack_start as fault_stack_start;
    __stack_start as stack_start;
    __stack_end as stack_end;
}

/// Where the block begins.
pub(crate) fn block() -> usize {
    image_start() - IMAGE
}

/// Whether an address is one of the program's instructions.
pub(crate) fn is_code(address: usize) -> bool {
    (image_start()..text_end()).contains(&address)
}

/// A stack of the core.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stack {
    /// That of `main`, interrupts and jobs.
    Main,
    /// That of the code that reports faults.
    Fault,
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
