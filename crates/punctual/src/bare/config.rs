//! How an app runs.

/// How an app runs. On a bare board there is nothing to choose: the board is, by the features of its crate.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Config {}

impl Config {
    /// The only one there is.
    pub fn new() -> Self {
        Self::default()
    }
}
