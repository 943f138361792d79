//! Publishes everything to a registry in a directory, and then uses it as a newcomer would.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::registry::{self, Registry};
use super::{is_published, pages, text};
use crate::scratch::Scratch;
use crate::{Result, cargo, process, transports};

/// The templates of `punctual new` that this machine can run; the one for boards is built from the
/// checkout by `cargo xtask bare`.
const TEMPLATES: [&str; 3] = ["plain", "gimbal", "ros2"];

pub(super) fn run() -> Result {
    let directory = cargo::target_dir().join("rehearsal");
    let registry = Registry::create(directory.join("registry"))?;
    let workspaces: [fn() -> Command; 2] = [cargo::command, transports::in_extras];
    let roots = [cargo::root().to_owned(), cargo::root().join("extras")];
    for (workspace, root) in workspaces.iter().zip(&roots) {
        let metadata = registry::complete_metadata(workspace())?;
        registry.mirror(&metadata, &fs::read_to_string(root.join("Cargo.lock"))?)?;
    }
    for workspace in workspaces {
        let metadata = cargo::metadata_of(&mut workspace())?;
        let packages = metadata["packages"].as_array().into_iter().flatten();
        for name in in_order(packages.filter(|package| is_published(package)).collect())? {
            registry.publish(workspace(), name)?;
            println!("published {name}");
        }
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

/// Returns the names of the packages, each after its dependencies among them.
fn in_order(packages: Vec<&Value>) -> Result<Vec<&str>> {
    let mut rest = packages;
    let mut order = Vec::new();
    while !rest.is_empty() {
        let waits = |package: &Value| {
            // A package keeps those for tests only if they have a version.
            let dependencies = package["dependencies"].as_array().into_iter().flatten();
            dependencies
                .filter(|it| it["req"] != "*")
                .any(|it| rest.iter().any(|other| other["name"] == it["name"]))
        };
        let (blocked, ready): (Vec<&Value>, Vec<&Value>) = rest.iter().copied().partition(|it| waits(it));
        if ready.is_empty() {
            return Err(
                "the packages depend on each other in a circle, so none can be published first".into()
            );
        }
        order.extend(ready.into_iter().map(|package| text(package, "name")));
        rest = blocked;
    }
    Ok(order)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn publishes_dependencies_first() {
        let package = |name, on: &[&str], req| {
            let on: Vec<Value> = on.iter().map(|name| json!({ "name": name, "req": req })).collect();
            json!({ "name": name, "dependencies": on })
        };
        let [top, middle, bottom] = [
            package("top", &["middle", "bottom", "elsewhere"], "=1.0.0"),
            package("middle", &["bottom"], "=1.0.0"),
            package("bottom", &["top"], "*"),
        ];
        assert_eq!(in_order(vec![&top, &middle, &bottom]).unwrap(), ["bottom", "middle", "top"]);
        let [one, two] = [package("one", &["two"], "=1.0.0"), package("two", &["one"], "=1.0.0")];
        assert!(in_order(vec![&one, &two]).is_err());
    }
}
