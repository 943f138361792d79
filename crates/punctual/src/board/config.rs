//! Configuration of a run on a board, which has no settings of its own.

use crate::config::Config;

/// The settings that only a board has: none.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlatformConfig;

impl Config {
    /// Leaves the configuration as it is: a board has no environment.
    pub(crate) fn read_environment(&mut self) {
        let PlatformConfig = self.platform;
    }
}
