//! The MMU, whose tables whoever has loaded the image has made.

use crate::layout;

/// Whether every access to an address ends the program.
pub(crate) fn is_forbidden(address: usize) -> bool {
    layout::guard(address).is_some()
}
