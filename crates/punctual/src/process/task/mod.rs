//! Tasks of a process: those that descriptors release, observed jobs, and measured costs.

pub(crate) mod costs;
pub(crate) mod descriptor;
pub(crate) mod observed;
