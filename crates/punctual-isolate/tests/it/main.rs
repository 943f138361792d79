//! The readers of `/proc` and `/sys`, on recorded machines and damaged files.

mod hostile;
mod machines;
