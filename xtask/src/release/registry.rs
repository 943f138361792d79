//! A registry of crates in a directory, which cargo reads and publishes to by `file:` addresses.
//!
//! The index is a git repository in the format that cargo documents ("Running a registry"). Cargo
//! writes an upload to one file, the address of its request; [`Registry::publish`] does the rest of
//! a registry's work: it stores the package and enters it into the index.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use punctual_process::child::{BoundedChild, BoundedCommand};
use serde_json::{Value, json};

use super::text;
use crate::process::TOOL_LIMIT;
use crate::{Result, cargo, process};

/// The name by which the configuration refers to the registry.
const NAME: &str = "rehearsal";

/// The path that cargo appends to the address of a registry for an upload.
const UPLOAD: &str = "api/v1/crates/new";

/// The interval at which the registry looks for an upload.
const POLL: Duration = Duration::from_millis(50);

/// The time that `cargo publish` ends within: it waits a minute for the package in the index.
const PUBLISH_LIMIT: Duration = Duration::from_secs(900);

pub(super) struct Registry {
    root: PathBuf,
}

impl Registry {
    /// Creates an empty registry in a directory whose old content is removed.
    pub(super) fn create(root: PathBuf) -> Result<Self> {
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        let registry = Self { root };
        for directory in [registry.index(), registry.packages(), registry.cargo_home()] {
            fs::create_dir_all(directory)?;
        }
        fs::create_dir_all(registry.upload().parent().unwrap_or(&registry.root))?;
        let root = registry.root.display();
        let config = json!({
            "dl": format!("file://{root}/packages/{{crate}}-{{version}}.crate"),
            "api": format!("file://{root}"),
        });
        fs::write(registry.index().join("config.json"), config.to_string())?;
        // All dependencies come from here, so that nothing published elsewhere can replace them.
        let config = format!(
            "[registries.{NAME}]\nindex = \"file://{root}/index\"\ntoken = \"unused\"\n\
             [source.crates-io]\nreplace-with = \"{NAME}\"\n\
             [source.{NAME}]\nregistry = \"file://{root}/index\"\n"
        );
        fs::write(registry.cargo_home().join("config.toml"), config)?;
        registry.git(&["init", "--quiet"])?;
        registry.commit("an empty index")?;
        Ok(registry)
    }

    /// Makes a command of cargo use this registry alone.
    pub(super) fn serve<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("CARGO_HOME", self.cargo_home())
    }

    /// Enters the packages of a lock file that come from another registry, from cargo's cache.
    ///
    /// `metadata` is cargo's complete metadata of the workspace with that lock file.
    pub(super) fn mirror(&self, metadata: &Value, lock: &str) -> Result {
        let lock: toml::Table = lock.parse()?;
        let locked = lock.get("package").and_then(toml::Value::as_array).into_iter().flatten();
        let checksum_of = |name: &str, version: &str| {
            let is =
                |entry: &toml::Value, key, value| entry.get(key).and_then(toml::Value::as_str) == Some(value);
            let entry = locked.clone().find(|entry| is(entry, "name", name) && is(entry, "version", version));
            entry.and_then(|entry| entry.get("checksum")).and_then(toml::Value::as_str)
        };
        for package in metadata["packages"].as_array().into_iter().flatten() {
            let (name, version) = (text(package, "name"), text(package, "version"));
            let Some(checksum) = checksum_of(name, version) else {
                continue;
            };
            let unpacked = Path::new(text(package, "manifest_path")).parent().unwrap_or(Path::new(""));
            let cached = cached_package(unpacked)?;
            let stored = self.package(name, version);
            if stored.exists() {
                continue;
            }
            fs::copy(&cached, stored)
                .map_err(|error| format!("{}: {error}; run `cargo fetch`", cached.display()))?;
            let dependencies = array(package, "dependencies").map(dependency_of_metadata).collect();
            self.enter(name, version, dependencies, &package["features"], checksum)?;
        }
        self.commit("the dependencies")
    }

    /// Publishes a package of the workspace in which `cargo` runs, with its whole verification left
    /// to those who then use it.
    pub(super) fn publish(&self, mut cargo: Command, name: &str) -> Result {
        // A rehearsal comes before the commit of a release.
        cargo.args(["publish", "--quiet", "--no-verify", "--allow-dirty", "--registry", NAME, "-p", name]);
        let mut child = self.serve(&mut cargo).default_signals().spawn()?;
        let deadline = Instant::now() + PUBLISH_LIMIT;
        let mut entered = false;
        let status = loop {
            if !entered && let Some(upload) = fs::read(self.upload()).ok().as_deref().and_then(Upload::read) {
                self.accept(&upload)?;
                fs::remove_file(self.upload())?;
                entered = true;
            }
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if Instant::now() >= deadline {
                child.end_at_once()?;
                return Err(format!("`cargo publish -p {name}` does not end").into());
            }
            thread::sleep(POLL);
        };
        if status.success() && entered { Ok(()) } else { Err(format!("{status} from {cargo:?}").into()) }
    }

    /// Stores an uploaded package.
    fn accept(&self, upload: &Upload<'_>) -> Result {
        let (name, version) = (text(&upload.description, "name"), text(&upload.description, "vers"));
        let stored = self.package(name, version);
        fs::write(&stored, upload.package)?;
        let sum = Command::new("sha256sum").arg("--").arg(&stored).output_within(TOOL_LIMIT)?;
        let sum = String::from_utf8(sum.stdout)?;
        let checksum = sum.split_whitespace().next().ok_or("sha256sum printed nothing")?;
        let dependencies = array(&upload.description, "deps").map(dependency_of_upload).collect();
        self.enter(name, version, dependencies, &upload.description["features"], checksum)?;
        self.commit(&format!("{name} {version}"))
    }

    /// Appends a version to the index.
    fn enter(
        &self,
        name: &str,
        version: &str,
        dependencies: Vec<Value>,
        features: &Value,
        checksum: &str,
    ) -> Result {
        let file = self.index().join(place(name));
        fs::create_dir_all(file.parent().unwrap_or(&self.root))?;
        let line = json!({
            "name": name, "vers": version, "deps": dependencies, "cksum": checksum,
            // Features in the notation of `dep:x` and `x?/y` belong to the second version.
            "features": {}, "features2": features, "yanked": false, "v": 2,
        });
        let before = fs::read_to_string(&file).unwrap_or_default();
        Ok(fs::write(file, format!("{before}{line}\n"))?)
    }

    fn commit(&self, message: &str) -> Result {
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--allow-empty", "-m", message])
    }

    fn git(&self, arguments: &[&str]) -> Result {
        let identity = ["-c", "user.name=rehearsal", "-c", "user.email=rehearsal@localhost"];
        process::succeed(Command::new("git").args(identity).args(arguments).current_dir(self.index()))
    }

    fn index(&self) -> PathBuf {
        self.root.join("index")
    }

    fn packages(&self) -> PathBuf {
        self.root.join("packages")
    }

    fn package(&self, name: &str, version: &str) -> PathBuf {
        self.packages().join(format!("{name}-{version}.crate"))
    }

    fn upload(&self) -> PathBuf {
        self.root.join(UPLOAD)
    }

    pub(super) fn cargo_home(&self) -> PathBuf {
        self.root.join("cargo-home")
    }
}

/// A request to publish: the length of a description, the description, the length of a package, and
/// the package.
struct Upload<'a> {
    description: Value,
    package: &'a [u8],
}

impl<'a> Upload<'a> {
    /// Returns the upload, or `None` while cargo still writes it.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (description, rest) = block(bytes)?;
        let (package, rest) = block(rest)?;
        rest.is_empty().then_some(())?;
        Some(Self { description: serde_json::from_slice(description).ok()?, package })
    }
}

/// Splits off a block, which begins with its length in 32 bits.
fn block(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

/// Returns the file of a crate in an index.
fn place(name: &str) -> PathBuf {
    let name = name.to_lowercase();
    match name.len() {
        length @ 1..=2 => PathBuf::from(format!("{length}/{name}")),
        3 => PathBuf::from(format!("3/{}/{name}", &name[..1])),
        _ => PathBuf::from(format!("{}/{}/{name}", &name[..2], &name[2..4])),
    }
}

/// Returns the package in cargo's cache whose content lies in `unpacked`.
fn cached_package(unpacked: &Path) -> Result<PathBuf> {
    // registry/src/<registry>/<package> belongs to registry/cache/<registry>/<package>.crate.
    let parts =
        (unpacked.file_name(), unpacked.parent().and_then(Path::file_name), unpacked.ancestors().nth(3));
    let (Some(package), Some(registry), Some(root)) = parts else {
        return Err(format!("{} is not in cargo's cache", unpacked.display()).into());
    };
    Ok(root.join("cache").join(registry).join(format!("{}.crate", package.display())))
}

/// Returns the entry of an index for a dependency in cargo's metadata.
fn dependency_of_metadata(dependency: &Value) -> Value {
    entry(dependency, &dependency["req"], &dependency["rename"])
}

/// Returns the entry of an index for a dependency in an upload.
fn dependency_of_upload(dependency: &Value) -> Value {
    entry(dependency, &dependency["version_req"], &dependency["explicit_name_in_toml"])
}

/// Returns the entry of an index; `renamed` is the name in the manifest if it differs.
fn entry(dependency: &Value, req: &Value, renamed: &Value) -> Value {
    // Dependencies of tests as well, since a feature may name one.
    let kind = dependency["kind"].as_str().unwrap_or("normal");
    let uses_default_features = [&dependency["uses_default_features"], &dependency["default_features"]]
        .into_iter()
        .any(|it| *it == true);
    let (name, package) = match renamed.as_str() {
        Some(renamed) => (json!(renamed), dependency["name"].clone()),
        None => (dependency["name"].clone(), Value::Null),
    };
    json!({
        "name": name, "package": package, "req": req, "kind": kind,
        "features": dependency["features"], "optional": dependency["optional"],
        "default_features": uses_default_features, "target": dependency["target"],
    })
}

fn array<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

/// Returns cargo's metadata of the workspace in which `command` runs, with all dependencies.
pub(super) fn complete_metadata(mut command: Command) -> Result<Value> {
    command.args(["metadata", "--locked", "--all-features", "--format-version=1"]);
    let output = command.stdout_within(cargo::BUILD_LIMIT)?;
    if !output.status.success() {
        return Err(format!("{} from {command:?}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locates_index_file_of_each_name() {
        let expected = [("a", "1/a"), ("io", "2/io"), ("log", "3/l/log"), ("Serde", "se/rd/serde")];
        for (name, path) in expected {
            assert_eq!(place(name), Path::new(path));
        }
    }

    #[test]
    fn reads_complete_uploads_only() {
        let whole = [&2_u32.to_le_bytes()[..], b"{}", &3_u32.to_le_bytes(), b"abc"].concat();
        for end in 0..whole.len() {
            assert!(Upload::read(&whole[..end]).is_none(), "{end}");
        }
        assert_eq!(Upload::read(&whole).unwrap().package, b"abc");
        assert!(Upload::read(&[&whole[..], b"x"].concat()).is_none());
    }

    #[test]
    fn keeps_both_names_of_renamed_dependency() {
        let of_metadata = json!({ "name": "b", "rename": "c", "req": "^1", "kind": null,
            "uses_default_features": true, "features": [], "optional": false, "target": null });
        let of_upload = json!({ "name": "b", "explicit_name_in_toml": "c", "version_req": "^1",
            "kind": "normal", "default_features": true, "features": [], "optional": false, "target": null });
        let entry = dependency_of_metadata(&of_metadata);
        assert_eq!(entry, dependency_of_upload(&of_upload));
        assert_eq!((&entry["name"], &entry["package"]), (&json!("c"), &json!("b")));
    }
}
