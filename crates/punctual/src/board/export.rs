//! Items that the generated code uses on a board in place of those of a process.

pub use crate::board::task::{Bound, BoundTask};
pub use crate::state::absent::{Calls, Ceilings, Reactor};
