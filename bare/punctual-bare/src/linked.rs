//! The linker's placement of sections that all boards share. The layouts of the boards build on it.

macro_rules! symbols {
    ($($symbol:ident as $name:ident;)*) => {
        unsafe extern "C" {
            $(static $symbol: u8;)*
        }
        $(
            #[doc = concat!("`", stringify!($symbol), "` of the linker's script.")]
            pub(crate) fn $name() -> usize {
                // Not a reference: only the address matters, and an absolute symbol refers to no
                // object.
                (&raw const $symbol).addr()
            }
        )*
    };
}

/// The size of a page.
pub(crate) const PAGE: usize = 0x1000;

symbols! {
    __image_start as image_start;
    __text_end as text_end;
    __bss_end as program_end;
}

/// Returns whether an address is one of the program's instructions.
pub(crate) fn is_code(address: usize) -> bool {
    (image_start()..text_end()).contains(&address)
}

/// A stack of a core.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stack {
    /// The stack of `main`, interrupts and jobs.
    Main,
    /// The stack of the code that reports faults.
    Fault,
}
