//! `cargo xtask transports`: the bridge and the gimbal with the features that bring many dependencies, tested with real peers.

use crate::{Result, cargo, process};

/// Each feature, with the tests that only it has.
const FEATURES: [&str; 3] = ["ros1", "ros2", "zenoh"];

pub(crate) fn run() -> Result {
    for feature in FEATURES {
        let features = format!("punctual-bridge/{feature},gimbal/{feature}");
        let both = ["-p", "punctual-bridge", "-p", "gimbal", "--features", &features];
        let lints = ["--all-targets", "--", "-Dwarnings"];
        process::succeed(cargo::command().args(["clippy", "--locked"]).args(both).args(lints))?;
        let tests = ["--lib", "--test", feature, "--", "--nocapture"];
        process::succeed(cargo::command().args(["test", "--locked"]).args(both).args(tests))?;
    }
    // What `punctual new` makes takes its crates from those that have been fetched for the others.
    let template = ["-p", "punctual-cli", "--test", "new", "--", "--ignored", "the_node_of_ros_2"];
    process::succeed(cargo::command().args(["test", "--locked"]).args(template))
}
