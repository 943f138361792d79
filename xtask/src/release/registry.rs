//! A directory of packages that cargo uses in place of its registry ("directory sources").

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::{Result, cargo, process};

pub(super) struct Registry {
    root: PathBuf,
}

impl Registry {
    /// Creates a registry with the dependencies in both lock files, in a directory whose old
    /// content is removed.
    pub(super) fn create(root: PathBuf) -> Result<Self> {
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        let registry = Self { root };
        fs::create_dir_all(registry.cargo_home())?;
        let mut vendor = cargo::command();
        vendor.args(["vendor", "--locked", "--quiet", "--versioned-dirs", "--sync", "extras/Cargo.toml"]);
        // Prints the configuration that is written here.
        process::succeed(vendor.arg(registry.packages()).stdout(Stdio::null()))?;
        // All dependencies come from here, so that nothing published elsewhere can replace them.
        let config = format!(
            "[source.crates-io]\nreplace-with = \"rehearsal\"\n[source.rehearsal]\ndirectory = {:?}\n",
            registry.packages()
        );
        fs::write(registry.cargo_home().join("config.toml"), config)?;
        Ok(registry)
    }

    /// Makes a command of cargo use this registry alone.
    pub(super) fn serve<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("CARGO_HOME", self.cargo_home())
    }

    /// Adds packages of the workspace in which `cargo` runs, given by names and versions: makes
    /// them as `cargo publish` does, with their verification left to those who then use them.
    pub(super) fn publish(&self, mut cargo: Command, packages: &[(&str, &str)]) -> Result {
        let target = self.root.join("target");
        // A rehearsal comes before the commit of a release. A lock file would need the packages of
        // the other workspace in the real registry; `--quick` checks the lock files of this one.
        cargo.args(["package", "--quiet", "--no-verify", "--allow-dirty", "--exclude-lockfile"]);
        cargo.args(packages.iter().flat_map(|(name, _)| ["-p", *name])).env("CARGO_TARGET_DIR", &target);
        process::succeed(&mut cargo)?;
        for (name, version) in packages {
            let package = format!("{name}-{version}");
            let archive = target.join("package").join(format!("{package}.crate"));
            let mut tar = Command::new("tar");
            tar.args(["-xz", "-C"]).arg(self.packages()).arg("-f").arg(archive);
            process::succeed(&mut tar)?;
            fs::write(self.packages().join(package).join(".cargo-checksum.json"), r#"{"files": {}}"#)?;
        }
        Ok(())
    }

    fn packages(&self) -> PathBuf {
        self.root.join("packages")
    }

    fn cargo_home(&self) -> PathBuf {
        self.root.join("cargo-home")
    }
}
