//! Recording with the BPF programs, for tests.

use punctual_trace::record::{Absent, Config, Filter, Group, Recording};

use super::{Place, start};
use test_skip::{Need, skip};

/// Returns the default groups and the programs, of this process.
pub fn config() -> Config {
    let filter = Filter { processes: vec![std::process::id()], ..Filter::default() };
    Config { filter, ..Config::default() }
}

/// Returns whether the group is available, or prints that it is not.
pub fn has_programs(absent: &[Absent]) -> bool {
    let missing = absent.iter().find(|absent| absent.group == Group::Schedule);
    missing.iter().for_each(|absent| skip(Need::System("BPF programs"), absent));
    missing.is_none()
}

/// Starts to record with the programs, or prints that this machine does not allow it.
pub fn start_with_programs(config: Config, place: &Place) -> Option<Recording> {
    start(config, &place.0.join("raw")).filter(|recording| has_programs(recording.absent()))
}
