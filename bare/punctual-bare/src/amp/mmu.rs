//! The MMU. The loader of the image builds its tables.

use crate::layout;

/// Returns whether every access to an address ends the program.
pub(crate) fn is_forbidden(address: usize) -> bool {
    layout::guard(address).is_some()
}
