//! `cargo xtask test transports`: tests the crates of `extras/`, which have many dependencies, with
//! real peers.

use std::process::Command;

use crate::{Result, cargo, process};

/// The crates, tested separately, because each enables other features of their common dependencies.
const CRATES: [&str; 6] =
    ["ethercat", "punctual-transport", "punctual-ros1", "punctual-ros2", "punctual-zenoh", "transport-proof"];
/// The program with the faults, and the transports that it starts.
const PROOF: [&str; 4] = ["transport-proof", "punctual-ros1", "punctual-ros2", "punctual-zenoh"];

#[derive(clap::Args)]
pub(crate) struct Options {
    /// As root: injects faults into each transport of an app of 10 kHz, each fault for this time,
    /// instead of the tests. Deadline misses must be as frequent as without faults, and every
    /// message must be counted
    #[arg(long, value_name = "SECONDS")]
    faults: Option<u32>,
}

pub(crate) fn run(options: &Options) -> Result {
    if let Some(seconds) = options.faults {
        return prove(seconds);
    }
    process::succeed(in_extras().args(["fmt", "--all", "--check"]))?;
    for name in CRATES {
        let select = ["--locked", "-p", name];
        let lints = ["--all-targets", "--", "-Dwarnings"];
        process::succeed(in_extras().arg("clippy").args(select).args(lints))?;
        process::succeed(in_extras().arg("test").args(select).args(["--", "--nocapture"]))?;
    }
    Ok(())
}

fn prove(seconds: u32) -> Result {
    let packages = PROOF.iter().flat_map(|name| ["-p", *name]);
    process::succeed(in_extras().args(["build", "--locked", "--release"]).args(packages))?;
    let program = cargo::target_dir().join("extras/release").join(PROOF[0]);
    process::succeed(Command::new(program).args(["--seconds", &seconds.to_string()]))
}

/// Returns a cargo command in the workspace `extras/`, whose build products are below those of the
/// main workspace.
pub(crate) fn in_extras() -> Command {
    let mut command = cargo::command();
    command.current_dir(cargo::root().join("extras"));
    command.env("CARGO_TARGET_DIR", cargo::target_dir().join("extras"));
    command
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;

    #[test]
    fn tests_every_crate_of_extras() {
        let manifest = fs::read_to_string(cargo::root().join("extras/Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let members = manifest["workspace"]["members"].as_array().unwrap();
        let members: BTreeSet<_> = members.iter().filter_map(|member| member.as_str()).collect();
        // The changed copy of a library without tests.
        let tested = CRATES.into_iter().chain(["rouille"]).collect();
        assert_eq!(members, tested);
    }

    /// Cargo would otherwise look for the keys that a transport inherits in the main workspace, if
    /// an app depends on both by path.
    #[test]
    fn main_workspace_excludes_others() {
        let read = |path| fs::read_to_string(path).ok()?.parse::<toml::Table>().ok();
        let main = read(cargo::root().join("Cargo.toml")).unwrap();
        let mut excluded: Vec<&str> = main["workspace"]["exclude"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|path| path.as_str())
            .collect();
        excluded.sort_unstable();
        let directories = fs::read_dir(cargo::root()).unwrap().map(|entry| entry.unwrap());
        let is_workspace = |path| read(path).is_some_and(|manifest| manifest.contains_key("workspace"));
        let others = directories.filter(|entry| is_workspace(entry.path().join("Cargo.toml")));
        let mut others: Vec<String> = others.map(|entry| entry.file_name().into_string().unwrap()).collect();
        others.sort_unstable();
        assert_eq!(excluded, others);
    }
}
