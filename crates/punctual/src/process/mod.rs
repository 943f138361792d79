//! The parts of the library for an app that is a Linux process, in real or virtual time.
//!
//! A submodule belongs to the module of the same name at the root of the crate, which re-exports
//! its items; the other submodules exist only here.

pub mod background;
pub(crate) mod cells;
pub(crate) mod config;
pub(crate) mod export;
pub mod external_clock;
pub(crate) mod lock;
pub(crate) mod logging;
pub(crate) mod observe;
pub mod persistent;
pub(crate) mod port;
pub mod remote;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod state;

/// Tasks that descriptors release, observed jobs, and measured costs.
pub(crate) mod task {
    pub(crate) mod costs;
    pub(crate) mod descriptor;
    pub(crate) mod observed;
}
