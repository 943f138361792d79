//! The memory that the gimbal's controllers on a CPU without Linux share with `gimbal_ui` on Linux,
//! in this order. Compiled for both.

use punctual::sync::shared::{Latest, Ring};

/// Wanted angles in rad: pan and tilt.
pub(crate) type Setpoints = Latest<[f64; 2]>;

/// For each period of the position loops: s since the start, angles and setpoints in rad.
pub(crate) type Record = Ring<[f64; 5], RECORD>;
pub(crate) const RECORD: usize = 1024;
