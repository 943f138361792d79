//! The package in which the variants are built: one program for each variant, with one module for
//! each example.
//!
//! Linking one program for each example would take several times as long. The package has the
//! profile, the target directory and those dependencies that the examples use, so few packages from
//! a registry are rebuilt for it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Value, json};
use toml::Table;

use super::{Program, Variant};
use crate::Result;
use crate::cargo;
use crate::golden::PACKAGE;
use crate::working_copy::uses;

/// The name of the package, and of its directory in the target directory.
pub(super) const NAME: &str = "variants";

/// Code that makes the `main` of an example callable from the root of the program.
const ENTRY: &str =
    "pub(crate) fn enter() -> ::std::process::ExitCode { ::std::process::Termination::report(main()) }\n";

/// Returns the name of the program with the examples of `variant`.
pub(super) fn program(variant: Variant) -> String {
    format!("{NAME}-{variant}")
}

/// Writes the package with the sources of `programs` into `directory`.
pub(super) fn write(directory: &Path, programs: &[Program]) -> Result {
    let workspace: Table = fs::read_to_string(cargo::root().join("Cargo.toml"))?.parse()?;
    let text: String =
        programs.iter().flat_map(|program| &program.examples).map(|(_, source)| source.as_str()).collect();
    let mut manifest = manifest(&cargo::metadata()?, &workspace, &text)?;
    for Program { variant, examples } in programs {
        let name = program(*variant);
        write!(manifest, "\n[[bin]]\nname = \"{name}\"\npath = \"{name}/main.rs\"\n")?;

        let sources = directory.join(&name);
        fs::create_dir_all(&sources)?;
        let mut main = String::from("#![allow(warnings)]\n");
        let mut arms = String::new();
        for (name, source) in examples {
            writeln!(main, "mod {name};")?;
            writeln!(arms, "        Some({name:?}) => {name}::enter(),")?;
            write_if_changed(&sources.join(name).with_extension("rs"), &format!("{source}{ENTRY}"))?;
        }
        write!(
            main,
            "fn main() -> std::process::ExitCode {{\n    match std::env::args().nth(1).as_deref() {{\n{arms}        \
             _ => panic!(\"the argument is the name of an example\"),\n    }}\n}}\n"
        )?;
        write_if_changed(&sources.join("main.rs"), &main)?;
        remove_others(&sources, &examples.iter().map(|(name, _)| name.as_str()).chain(["main"]).collect())?;
    }
    write_if_changed(&directory.join("Cargo.toml"), &manifest)?;
    // Cargo adds this package and removes unneeded entries.
    fs::copy(cargo::root().join("Cargo.lock"), directory.join("Cargo.lock"))?;
    Ok(())
}

/// Returns the head of the manifest, with those dependencies of [`PACKAGE`] that occur in `sources`
/// and the package itself, from cargo's metadata of the workspace, and the profile that packages
/// from a registry have there.
fn manifest(metadata: &Value, workspace: &Table, sources: &str) -> Result<String> {
    let packages = metadata["packages"].as_array().ok_or("cargo names no packages")?;
    let package = packages
        .iter()
        .find(|package| package["name"] == PACKAGE)
        .ok_or("cargo does not know the package")?;
    let home = Path::new(package["manifest_path"].as_str().unwrap_or_default()).parent();
    let profile = workspace
        .get("profile")
        .and_then(|profiles| profiles.get("dev")?.get("package")?.get("*"))
        .ok_or("the workspace has no `profile.dev.package.\"*\"`")?;
    let mut text = format!(
        "[package]\nname = \"{NAME}\"\nedition = {}\npublish = false\n\n[workspace]\n\n[profile.dev.package]\n\"*\" = \
         {profile}\n\n[dependencies]\n{PACKAGE} = {{ path = {} }}\n",
        package["edition"],
        json!(home),
    );
    let dependencies_of_it = package["dependencies"].as_array().into_iter().flatten();
    text.push_str(&dependencies(dependencies_of_it.filter(|dependency| uses(sources, name_of(dependency))))?);
    Ok(text)
}

/// Returns the lines of a manifest that depend on the same packages as a package of cargo's
/// metadata.
pub(crate) fn dependencies<'a>(of: impl Iterator<Item = &'a Value>) -> Result<String> {
    let (mut text, mut dependencies) = (String::new(), Vec::from_iter(of));
    // A package may be listed once for all targets, and once more for some.
    dependencies.sort_by_key(|dependency| dependency["target"].as_str());
    let mut target = None;
    for dependency in dependencies {
        if dependency["target"].as_str() != target {
            target = dependency["target"].as_str();
            write!(text, "\n[target.{:?}.dependencies]\n", target.unwrap_or_default())?;
        }
        let name = name_of(dependency);
        write!(
            text,
            "{name} = {{ package = {}, version = {}, features = {}, default-features = {}",
            dependency["name"],
            dependency["req"],
            dependency["features"],
            dependency["uses_default_features"],
        )?;
        if let Some(path) = dependency["path"].as_str() {
            write!(text, ", path = {path:?}")?;
        }
        text.push_str(" }\n");
    }
    Ok(text)
}

/// Returns the name of a dependency in the package that has it.
fn name_of(dependency: &Value) -> &str {
    dependency["rename"].as_str().or(dependency["name"].as_str()).unwrap_or_default()
}

/// Writes a file, unless it has that content: cargo rebuilds after a file's modification.
pub(crate) fn write_if_changed(path: &Path, content: &str) -> io::Result<()> {
    if fs::read(path).is_ok_and(|old| old == content.as_bytes()) { Ok(()) } else { fs::write(path, content) }
}

/// Removes the sources of examples that no longer exist.
pub(crate) fn remove_others(directory: &Path, names: &BTreeSet<&str>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.file_stem().is_none_or(|stem| !names.contains(&*stem.to_string_lossy())) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_dependencies_that_the_examples_use() {
        let metadata = json!({ "packages": [
            { "name": "other" },
            { "name": "punctual", "edition": "2024", "manifest_path": "/w/crates/punctual/Cargo.toml", "dependencies": [
                { "name": "rustix", "req": "^1", "features": ["time"], "uses_default_features": true },
                { "name": "criterion", "req": "^0.8", "features": [], "uses_default_features": true },
                { "name": "punctual-sync", "req": "^0.1.0", "features": [], "uses_default_features": true,
                  "path": "/w/crates/punctual-sync" },
            ] },
        ] });
        let workspace = "[profile.dev.package.\"*\"]\ndebug = false\n[workspace]\n".parse().unwrap();
        let manifest = manifest(&metadata, &workspace, "rustix::time::f(punctual_sync::G)").unwrap();
        assert!(!manifest.contains("criterion"), "{manifest}");
        for line in [
            r#""*" = { debug = false }"#,
            r#"edition = "2024""#,
            r#"punctual = { path = "/w/crates/punctual" }"#,
            r#"rustix = { package = "rustix", version = "^1", features = ["time"], default-features = true }"#,
            r#"punctual-sync = { package = "punctual-sync", version = "^0.1.0", features = [], default-features = true, path = "/w/crates/punctual-sync" }"#,
        ] {
            assert!(manifest.lines().any(|found| found == line), "{line} is not in\n{manifest}");
        }
    }
}
