//! Packages everything into a source of crates in a directory, and then uses it as a newcomer
//! would.
//!
//! The directory replaces the public registry for cargo. It has the locked dependencies, as `cargo
//! vendor` writes them, and the packages of both workspaces, unpacked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{is_published, package, pages, text};
use crate::scratch::Scratch;
use crate::{Result, cargo, process, transports};

/// The templates of `punctual new` that this machine can run; the one for boards is built from the
/// checkout by `cargo xtask bare`.
const TEMPLATES: [&str; 3] = ["plain", "gimbal", "ros2"];

/// A directory with sources of crates, from which alone cargo takes dependencies.
struct Crates {
    /// The directory of the whole rehearsal.
    root: PathBuf,
}

impl Crates {
    /// Creates the directory with the locked dependencies of both workspaces; its old content is
    /// removed.
    fn create(root: PathBuf) -> Result<Self> {
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        let crates = Self { root };
        fs::create_dir_all(crates.cargo_home())?;
        let mut vendor = cargo::command();
        vendor.args(["vendor", "--locked", "--quiet", "--versioned-dirs", "--sync"]);
        vendor.arg(cargo::root().join("extras/Cargo.toml")).arg(crates.sources());
        // It prints the configuration that follows.
        process::succeed(vendor.stdout(std::process::Stdio::null()))?;
        let config = format!(
            "[source.crates-io]\nreplace-with = \"rehearsal\"\n[source.rehearsal]\ndirectory = {:?}\n",
            crates.sources()
        );
        fs::write(crates.cargo_home().join("config.toml"), config)?;
        Ok(crates)
    }

    /// Makes the published packages of a workspace and adds them.
    fn add(&self, workspace: fn() -> Command, options: &[&str]) -> Result {
        let metadata = cargo::metadata_of(&mut workspace())?;
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let published: Vec<&Value> = packages.filter(|package| is_published(package)).collect();
        let names = published.iter().flat_map(|package| ["-p", text(package, "name")]);
        process::succeed(package(workspace(), names).args(options))?;
        for package in published {
            let name = format!("{}-{}", text(package, "name"), text(package, "version"));
            let made = Path::new(text(&metadata, "target_directory")).join("package").join(&name);
            let mut unpack = Command::new("tar");
            unpack.arg("-xzf").arg(made.with_added_extension("crate")).arg("-C").arg(self.sources());
            process::succeed(&mut unpack)?;
            // Cargo verifies no file that is not listed.
            fs::write(self.sources().join(&name).join(".cargo-checksum.json"), "{\"files\":{}}")?;
            println!("packaged {name}");
        }
        Ok(())
    }

    /// Returns a cargo command that uses these crates alone, outside of the checkout.
    fn away(&self) -> Command {
        let mut command = cargo::command();
        command.env("CARGO_HOME", self.cargo_home()).env("CARGO_TARGET_DIR", self.root.join("target"));
        command.current_dir("/");
        command
    }

    fn sources(&self) -> PathBuf {
        self.root.join("sources")
    }

    fn cargo_home(&self) -> PathBuf {
        self.root.join("cargo-home")
    }
}

pub(super) fn run() -> Result {
    let crates = Crates::create(cargo::target_dir().join("rehearsal"))?;
    crates.add(cargo::command, &[])?;
    // A lock file would need the packages of the first workspace in the public registry.
    crates.add(transports::in_extras, &["--exclude-lockfile"])?;
    let installed = crates.root.join("installed");
    process::succeed(crates.away().args(["install", "punctual-cli", "--root"]).arg(&installed))?;
    println!("installed: `punctual` from its package");
    for template in TEMPLATES {
        try_template(&crates, &installed.join("bin/punctual"), template)?;
        println!("template {template}: builds, and passes its tests");
    }
    pages::run(&crates.root.join("pages"), &installed.join("bin/punctual"))
}

/// Creates a crate from a template, and runs its tests.
fn try_template(crates: &Crates, punctual: &Path, template: &str) -> Result {
    // Outside the checkout, which otherwise takes the crate for a part of its workspace.
    let scratch = Scratch::new(&format!("rehearsal-{template}"))?;
    let name = format!("my-{template}");
    let mut new = Command::new(punctual);
    process::succeed(new.args(["new", &name, "--template", template]).current_dir(scratch.path()))?;
    process::succeed(crates.away().args(["test", "--quiet"]).current_dir(scratch.path().join(name)))
}
