//! The gimbal as a program: set points, parameters, recordings, output.

mod live;

mod recording;
mod setpoints;
mod spi;
mod standard_output;
mod tuning;

use std::fs;
use std::path::PathBuf;

/// A directory that is removed with the test.
pub(crate) struct Place(pub(crate) PathBuf);

impl Place {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gimbal-{name}-{}", std::process::id()));
        fs::create_dir(&path).expect("there is room for a directory");
        Self(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
