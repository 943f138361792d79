//! Stage of a run's thread, reported by the supervisor if it does not end.

use std::fmt;

/// Current activity of a run's thread, or what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// `#[init]`.
    Init,
    /// Tasks, `idle`, and the end of their threads.
    Tasks,
    /// Dropping the arguments of jobs that have not run.
    Arguments,
    /// `#[shutdown]`.
    Hook,
    /// Dropping the resources.
    Resources,
}

impl Stage {
    /// Returns the stage with this number.
    pub(crate) fn from_number(number: u8) -> Self {
        let all = [Self::Init, Self::Arguments, Self::Hook, Self::Resources];
        all.into_iter().find(|stage| *stage as u8 == number).unwrap_or(Self::Tasks)
    }
}

/// Describes what does not end, if nothing else is left.
impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Init => "`init`",
            Self::Tasks => {
                "a thread of the app, in a thread-local destructor or a call given to `background::submit`,"
            }
            Self::Arguments => "the destructor of an argument of a job that has not run",
            Self::Hook => "`shutdown`",
            Self::Resources => "the destructor of a resource",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_their_stages() {
        for stage in [Stage::Init, Stage::Tasks, Stage::Arguments, Stage::Hook, Stage::Resources] {
            assert_eq!(Stage::from_number(stage as u8), stage);
        }
    }
}
