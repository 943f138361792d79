//! Virtual time: a clock that jumps to the next event, with a deterministic order.

mod claims;
mod turns;

pub(crate) use claims::{Claim, Claims};
pub(crate) use turns::{END, Simulated, Turns, Until};
