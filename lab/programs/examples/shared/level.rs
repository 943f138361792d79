//! The memory that `level` on a CPU without Linux shares with `level_ui` on Linux, in this order.
//! Compiled for both.

use punctual::Duration;
use punctual::sync::shared::{Heartbeat, Inbox, Latest, Ring};

/// The level that the user wants.
pub(crate) type Wanted = Latest<f32>;

/// The level ten times a second, with the number of the answer.
pub(crate) type Levels = Ring<[f32; 2], 16>;

/// Ways in which the controller is to fail.
pub(crate) type Failures = Inbox<u32, 4>;
pub(crate) const SHUT_DOWN: u32 = 0;
pub(crate) const PANIC: u32 = 1;
pub(crate) const HANG: u32 = 2;
pub(crate) const FAULT: u32 = 3;

/// The heartbeats of the controller, and then of the program on Linux.
pub(crate) type Beat = Heartbeat;

/// Silence for this time counts as a stall. Both beat and ask twice in it, so each reaches its safe
/// state within 8 s.
pub(crate) const SILENCE: Duration = Duration::from_secs(4);
