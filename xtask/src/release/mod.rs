//! `cargo xtask check release`: rehearses the publication of every crate, up to its use.
//!
//! The manifests contain the entries that a registry and its users need, the documentation builds
//! as on docs.rs, the public interface follows semantic versioning since the last tag, and the
//! oldest supported compiler builds all of it. Then each package is published to a registry in
//! `target/`, from which `cargo install` and the crates of `punctual new` must build; the installed
//! program writes every kind of page, and a browser draws each, for a person to look at. A warning
//! names each check that cannot run on this machine.

mod pages;
mod registry;
mod rehearsal;

use std::path::Path;
use std::process::Command;

use clap::Args;
use punctual_process::child::BoundedCommand;
use serde_json::Value;

use crate::book::REPOSITORY;
use crate::process::TOOL_LIMIT;
use crate::{Result, cargo, process, transports};

/// Files that every package contains, in addition to its manifest.
const FILES: [&str; 3] = ["README.md", "LICENSE-APACHE", "LICENSE-MIT"];

#[derive(Args)]
pub(crate) struct Options {
    /// Only checks that take seconds: the manifests, and that packages can be made
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(options: &Options) -> Result {
    let metadata = cargo::metadata()?;
    let published = published(&metadata)?;
    let names: Vec<&str> = published.iter().filter_map(|package| package["name"].as_str()).collect();
    let version = published.first().and_then(|package| package["rust_version"].as_str()).unwrap_or_default();
    println!("manifests: {} can be published, for Rust {version} and later", names.join(", "));

    let all = names.iter().flat_map(|name| ["-p", name]);
    if options.quick {
        let mut package = cargo::command();
        // A release is made from a commit; the check must also run before the commit.
        package.args(["package", "--locked", "--allow-dirty", "--quiet", "--no-verify"]).args(all);
        process::succeed(&mut package)?;
        println!("packages: made");
        return Ok(());
    }
    for package in &published {
        document(package)?;
    }
    println!("documentation: built as docs.rs does");
    minimum(version, all.clone())?;
    compatibility(all)?;
    rehearsal::run()
}

/// Returns the packages of the workspace that are published. An error lists the defects of their
/// manifests and of those in `extras/`.
fn published(metadata: &Value) -> Result<Vec<&Value>> {
    let (published, released_with): (Vec<&Value>, Vec<&Value>) =
        packages(metadata).partition(|it| is_published(it));
    // Packages of `extras` follow the others, because a registry must have their dependencies.
    let extras = cargo::metadata_of(&mut transports::in_extras())?;
    let all = published.iter().copied().chain(packages(&extras).filter(|package| is_published(package)));
    let faults: Vec<String> = all.flat_map(|package| faults(package, &released_with)).collect();
    if faults.is_empty() {
        Ok(published)
    } else {
        Err(format!("these manifests cannot be published:\n{}", faults.join("\n")).into())
    }
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn is_published(package: &Value) -> bool {
    // `publish = false` is an empty list of registries; without the key it is null.
    package["publish"].as_array().is_none_or(|registries| !registries.is_empty())
}

/// Returns the defects of the manifest of a published package; `released_with` are the packages
/// that are not published.
fn faults(package: &Value, released_with: &[&Value]) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let mut faults = Vec::new();
    for key in ["description", "license", "readme", "rust_version"] {
        if package[key].as_str().is_none_or(str::is_empty) {
            faults.push(format!("{name}: no `{}`", key.replace('_', "-")));
        }
    }
    for key in ["keywords", "categories"] {
        // A registry accepts at most five.
        if !(1..=5).contains(&package[key].as_array().map_or(0, Vec::len)) {
            faults.push(format!("{name}: `{key}` needs one to five entries"));
        }
    }
    if package["repository"].as_str() != REPOSITORY {
        let address = REPOSITORY.unwrap_or("none, since there is no public repository");
        faults.push(format!("{name}: `repository` is {}, not {address}", package["repository"]));
    }
    if package["metadata"]["docs"]["rs"].is_null() {
        faults.push(format!("{name}: no [package.metadata.docs.rs]"));
    }
    let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
    let directory = manifest.parent().unwrap_or(Path::new(""));
    for file in FILES {
        let own_readme = file == "README.md" && package["readme"].as_str().is_some_and(|path| path != file);
        if !own_readme && !directory.join(file).exists() {
            faults.push(format!("{name}: no {file}"));
        }
    }
    // Dependencies for tests and benchmarks are omitted from a package unless they have a version.
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    for dependency in dependencies.filter(|it| it["path"].is_string() && it["kind"] != "dev") {
        let on = dependency["name"].as_str().unwrap_or_default();
        if released_with.iter().any(|package| package["name"] == on) {
            faults.push(format!("{name}: depends on {on}, which is not published"));
        }
        // Crates of one release share private items.
        let wanted = format!("={}", package["version"].as_str().unwrap_or_default());
        if dependency["req"] != wanted {
            faults.push(format!("{name}: depends on {on} {}, not {wanted}", dependency["req"]));
        }
    }
    faults
}

/// Builds the documentation of a package with the features that its metadata for docs.rs names.
fn document(package: &Value) -> Result {
    let name = package["name"].as_str().unwrap_or_default();
    let settings = &package["metadata"]["docs"]["rs"];
    let mut command = cargo::command();
    command.args(["doc", "--locked", "--quiet", "--no-deps", "-p", name]);
    if settings["all-features"] == true {
        command.arg("--all-features");
    }
    for feature in settings["features"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        command.args(["--features", feature]);
    }
    process::succeed(command.env("RUSTDOCFLAGS", "--cfg docsrs -D warnings"))
}

/// Builds everything that is published with the oldest supported compiler, in a separate target
/// directory.
fn minimum<'a>(version: &str, packages: impl Iterator<Item = &'a str>) -> Result {
    // Under its own name, or as the stable release.
    let names = [format!("+{version}"), "+stable".to_owned()];
    let is_oldest = |toolchain: &&String| {
        let output = Command::new("cargo").args([toolchain, "--version"]).output_within(TOOL_LIMIT);
        output.is_ok_and(|output| {
            output.status.success() && output.stdout.starts_with(format!("cargo {version}.").as_bytes())
        })
    };
    let Some(toolchain) = names.iter().find(is_oldest) else {
        println!(
            "\n*** SKIPPED: NOTHING WAS BUILT WITH RUST {version}. `rustup toolchain install {version} --profile minimal` ***\n"
        );
        return Ok(());
    };
    // By name, because the cargo that started this program belongs to one toolchain.
    let mut command = Command::new("cargo");
    command.args([toolchain, "check", "--locked", "--quiet", "--all-features"]).args(packages);
    command.current_dir(cargo::root()).env("CARGO_TARGET_DIR", cargo::target_dir().join("minimum"));
    // Set by the toolchain that started this program.
    for variable in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(variable);
    }
    process::succeed(&mut command)?;
    println!("Rust {version}: builds every package with all features");
    Ok(())
}

/// Compares the public interfaces with those of the last release.
fn compatibility<'a>(packages: impl Iterator<Item = &'a str>) -> Result {
    let mut git = Command::new("git");
    git.args(["describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]).current_dir(cargo::root());
    let output = git.output_within(TOOL_LIMIT)?;
    if !output.status.success() {
        println!(
            "\n*** SKIPPED: NO INTERFACE WAS COMPARED, since there is no tag of a release (v0.1.0) yet ***\n"
        );
        return Ok(());
    }
    let tag = String::from_utf8(output.stdout)?.trim().to_owned();
    if !process::answers(cargo::command().args(["semver-checks", "--version"])) {
        println!(
            "\n*** SKIPPED: NO INTERFACE WAS COMPARED WITH {tag}. `cargo install cargo-semver-checks --locked` ***\n"
        );
        return Ok(());
    }
    process::succeed(cargo::command().args(["semver-checks", "--baseline-rev", &tag]).args(packages))?;
    println!("interfaces: compatible with {tag}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package() -> Value {
        json!({
            "name": "a",
            "version": "0.1.0",
            "description": "x",
            "license": "MIT",
            "repository": REPOSITORY,
            "readme": "../../README.md",
            "rust_version": "1.95",
            "keywords": ["x"],
            "categories": ["embedded"],
            "metadata": { "docs": { "rs": {} } },
            "manifest_path": cargo::root().join("crates/punctual-report/Cargo.toml"),
            "dependencies": [
                { "name": "b", "req": "=0.1.0", "kind": null, "path": "/b" },
                { "name": "c", "req": "^1", "kind": null },
                { "name": "d", "req": "*", "kind": "dev", "path": "/d" },
            ],
        })
    }

    #[test]
    fn accepts_complete_manifest() {
        assert_eq!(faults(&package(), &[]), [""; 0]);
    }

    #[test]
    fn rejects_incomplete_manifest() {
        let change = |path: &str, value: Value| {
            let mut package = package();
            *package.pointer_mut(path).unwrap() = value;
            faults(&package, &[&json!({ "name": "kept" })]).join("\n")
        };
        assert_eq!(change("/description", Value::Null), "a: no `description`");
        assert_eq!(change("/rust_version", Value::Null), "a: no `rust-version`");
        assert_eq!(change("/keywords", json!([])), "a: `keywords` needs one to five entries");
        let invented = change("/repository", json!("https://example.org"));
        assert!(invented.starts_with("a: `repository` is \"https://example.org\", not "), "{invented}");
        assert_eq!(change("/metadata", Value::Null), "a: no [package.metadata.docs.rs]");
        assert_eq!(change("/dependencies/0/req", json!("^0.1.0")), "a: depends on b \"^0.1.0\", not =0.1.0");
        assert_eq!(
            change("/dependencies/0/name", json!("kept")),
            "a: depends on kept, which is not published"
        );
        let elsewhere = json!(cargo::root().join("Cargo.toml"));
        assert_eq!(change("/manifest_path", elsewhere), "");
        assert!(change("/manifest_path", json!("/nonexistent/Cargo.toml")).contains("a: no LICENSE-MIT"));
    }

    #[test]
    fn each_crate_can_be_published() {
        let metadata = cargo::metadata().unwrap();
        let count = published(&metadata).unwrap_or_else(|error| panic!("{error}")).len();
        assert!(count > 10, "{count}");
    }

    #[test]
    fn publishes_by_default() {
        assert!(is_published(&json!({ "publish": null })));
        assert!(is_published(&json!({ "publish": ["crates-io"] })));
        assert!(!is_published(&json!({ "publish": [] })));
    }
}
