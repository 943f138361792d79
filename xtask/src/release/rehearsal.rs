//! Packages everything that is published, and then uses the packages as a newcomer would.
//!
//! Cargo takes Punctual's crates from [`Packages`], and all others from its cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{is_published, text};
use crate::scratch::Scratch;
use crate::{Result, cargo, process, transports};

/// The templates of `punctual new` that this machine can run; the one for boards is built from the
/// checkout by `cargo xtask bare`.
const TEMPLATES: [&str; 3] = ["plain", "gimbal", "ros2"];

pub(super) fn run() -> Result {
    // Outside the checkout, which otherwise takes a package for a part of its workspace.
    let scratch = Scratch::new("rehearsal")?;
    let mut packages = Packages::new(scratch.path())?;
    packages.unpack(cargo::command)?;
    // With unpublished packages, cargo enters them into the lock file.
    let lock = cargo::root().join("extras/Cargo.lock");
    let locked = fs::read(&lock)?;
    let unpacked = packages.unpack(transports::in_extras);
    fs::write(lock, locked)?;
    unpacked?;

    let installed = cargo::target_dir().join("rehearsal/installed");
    let mut install = packages.cargo();
    install.args(["install", "--force", "--path"]).arg(packages.directory("punctual-cli")?);
    process::succeed(install.arg("--root").arg(&installed))?;
    println!("installed: `punctual` from its package");
    for template in TEMPLATES {
        let name = format!("my-{template}");
        let mut new = Command::new(installed.join("bin/punctual"));
        process::succeed(new.args(["new", &name, "--template", template]).current_dir(scratch.path()))?;
        let mut test = packages.cargo();
        process::succeed(test.args(["test", "--quiet"]).current_dir(scratch.path().join(name)))?;
        println!("template {template}: builds, and passes its tests");
    }
    Ok(())
}

/// The unpacked packages, which replace published ones in cargo's configuration.
struct Packages<'a> {
    scratch: &'a Path,
    config: PathBuf,
    /// Each with its directory.
    names: Vec<(String, PathBuf)>,
}

impl<'a> Packages<'a> {
    fn new(scratch: &'a Path) -> Result<Self> {
        let packages = Self { scratch, config: scratch.join("config.toml"), names: Vec::new() };
        packages.configure()?;
        Ok(packages)
    }

    fn configure(&self) -> Result {
        let patches = self.names.iter().map(|(name, path)| format!("{name} = {{ path = {path:?} }}\n"));
        Ok(fs::write(&self.config, format!("[patch.crates-io]\n{}", patches.collect::<String>()))?)
    }

    /// Packages the published crates of the workspace in which `workspace` runs cargo.
    fn unpack(&mut self, workspace: fn() -> Command) -> Result {
        let metadata = cargo::metadata_of(&mut workspace())?;
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let published: Vec<_> = packages.filter(|package| is_published(package)).collect();
        let mut package = workspace();
        // A rehearsal comes before the commit of a release.
        package.args(["package", "--quiet", "--no-verify", "--allow-dirty", "--offline", "--config"]);
        package.arg(&self.config).args(published.iter().flat_map(|it| ["-p", text(it, "name")]));
        process::succeed(&mut package)?;
        let made = Path::new(text(&metadata, "target_directory")).join("package");
        for package in published {
            let (name, version) = (text(package, "name"), text(package, "version"));
            let directory = self.scratch.join(format!("{name}-{version}"));
            let mut tar = Command::new("tar");
            tar.arg("-xzf").arg(made.join(format!("{name}-{version}.crate"))).arg("-C").arg(self.scratch);
            process::succeed(&mut tar)?;
            println!("package {name}: made");
            self.names.push((name.to_owned(), directory));
        }
        self.configure()
    }

    fn directory(&self, name: &str) -> Result<&Path> {
        let found = self.names.iter().find(|(package, _)| package == name);
        Ok(&found.ok_or_else(|| format!("no package is called {name}"))?.1)
    }

    /// Returns a cargo command that uses the packages, outside of the checkout.
    fn cargo(&self) -> Command {
        let mut command = cargo::command();
        command.current_dir("/").env("CARGO_TARGET_DIR", cargo::target_dir().join("rehearsal/target"));
        command.args(["--offline", "--config"]).arg(&self.config);
        command
    }
}
