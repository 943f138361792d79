//! Publishes everything to a registry in a directory, and then uses it as a newcomer would.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::registry::Registry;
use super::{is_published, pages, text};
use crate::scratch::Scratch;
use crate::{Result, cargo, process, transports};

/// The templates of `punctual new` that this machine can run; the one for boards is built from the
/// checkout by `cargo xtask bare`.
const TEMPLATES: [&str; 3] = ["plain", "gimbal", "ros2"];

pub(super) fn run() -> Result {
    let directory = cargo::target_dir().join("rehearsal");
    let registry = Registry::create(directory.join("registry"))?;
    for workspace in [cargo::command, transports::in_extras] {
        let metadata = cargo::metadata_of(&mut workspace())?;
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let published = packages.filter(|package| is_published(package));
        let published: Vec<_> =
            published.map(|package: &Value| (text(package, "name"), text(package, "version"))).collect();
        registry.publish(workspace(), &published)?;
        published.iter().for_each(|(name, _)| println!("published {name}"));
    }
    let installed = directory.join("installed");
    let mut install = away(&registry, &directory);
    process::succeed(install.args(["install", "punctual-cli", "--root"]).arg(&installed))?;
    println!("installed: `punctual` from the registry");
    for template in TEMPLATES {
        try_template(&registry, &directory, &installed.join("bin/punctual"), template)?;
        println!("template {template}: builds, and passes its tests");
    }
    pages::run(&directory.join("pages"), &installed.join("bin/punctual"))
}

/// Creates a crate from a template, and runs its tests.
fn try_template(registry: &Registry, directory: &Path, punctual: &Path, template: &str) -> Result {
    // Outside the checkout, which otherwise takes the crate for a part of its workspace.
    let scratch = Scratch::new(&format!("rehearsal-{template}"))?;
    let name = format!("my-{template}");
    let mut new = Command::new(punctual);
    process::succeed(new.args(["new", &name, "--template", template]).current_dir(scratch.path()))?;
    let mut test = away(registry, directory);
    process::succeed(test.args(["test", "--quiet"]).current_dir(scratch.path().join(name)))
}

/// Returns a cargo command that uses the registry, outside of the checkout.
fn away(registry: &Registry, directory: &Path) -> Command {
    let mut command = cargo::command();
    registry.serve(&mut command).current_dir("/").env("CARGO_TARGET_DIR", directory.join("target"));
    command
}
