//! The suites. A new suite is a module with a `SUITE`, and an entry in [`ALL`].

pub mod behavior;
pub mod curves;
pub mod endurance;
pub mod executors;
pub mod hourglass;
pub mod interference;
pub mod latency;
pub mod periods;
pub mod policies;
pub mod rtos;

use std::str::FromStr;

use crate::options::{Plan, SuiteName};
use crate::session::Step;

/// The properties of a suite: the rest of the crate reads them from here.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Registration {
    /// Name.
    pub name: SuiteName,
    /// Heading.
    pub title: &'static str,
    /// Subject of its measurements, for the help.
    pub summary: &'static str,
    /// True if it runs by default.
    pub is_usual: bool,
    /// True if it compares Punctual with other crates or with POSIX, so that the others are
    /// references for comparisons of runs.
    pub has_references: bool,
    pub(crate) steps: fn(&Plan) -> Vec<Step>,
}

/// All suites, in the order in which they run.
pub const ALL: [Registration; 10] = [
    periods::SUITE,
    rtos::SUITE,
    behavior::SUITE,
    latency::SUITE,
    executors::SUITE,
    hourglass::SUITE,
    interference::SUITE,
    policies::SUITE,
    curves::SUITE,
    endurance::SUITE,
];

/// Returns the suites with these names, or those that run by default, in the order in which they
/// run.
pub(crate) fn chosen(names: &[SuiteName]) -> Vec<Registration> {
    let is_chosen = |suite: &Registration| match names {
        [] => suite.is_usual,
        names => names.contains(&suite.name),
    };
    ALL.into_iter().filter(is_chosen).collect()
}

impl FromStr for SuiteName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = ALL.into_iter().find(|suite| suite.name.as_str() == name);
        found.map(|suite| suite.name).ok_or_else(|| {
            let names = ALL.map(|suite| suite.name.as_str());
            format!("there is no suite `{name}`; there are {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_prints_names_of_suites() {
        for suite in ALL {
            assert_eq!(suite.name.as_str().parse(), Ok(suite.name));
        }
        assert!("rtoss".parse::<SuiteName>().is_err());
    }

    #[test]
    fn selects_default_or_named_suites_in_order() {
        let names = |names: &[SuiteName]| chosen(names).iter().map(|suite| suite.name).collect::<Vec<_>>();
        assert_eq!(names(&[]).len(), ALL.len() - 1, "all but endurance");
        let twice = [policies::NAME, rtos::NAME, rtos::NAME];
        assert_eq!(names(&twice), [rtos::NAME, policies::NAME]);
    }
}
