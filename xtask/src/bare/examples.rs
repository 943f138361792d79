//! The examples of `punctual` as programs for boards: a package that is written into the target
//! directory, with one program for each example.
//!
//! An example is compiled from the same source as on Linux. Its program adds only what a crate
//! without `std` needs. The package has the dependencies of `programs` and uses the same target
//! directory, so no other package is rebuilt for it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use super::toolchain;
use crate::golden::{self, Golden};
use crate::{Result, cargo, files, variants};

/// The name of the package.
pub(super) const NAME: &str = "board-examples";

/// The package whose dependencies the examples have.
const PROGRAMS: &str = "programs";

/// Examples that do not run on boards, and the reason.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Excluded {
    pub(super) examples: Vec<String>,
    pub(super) needs: String,
}

/// Returns the table of excluded examples.
pub(super) fn excluded() -> Result<Vec<Excluded>> {
    #[derive(Deserialize)]
    struct Table {
        excluded: Vec<Excluded>,
    }
    let path = toolchain::workspace().join(PROGRAMS).join("examples.toml");
    let text = files::read(&path)?;
    let table: Table = toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(table.excluded)
}

/// Returns the examples that run on boards.
pub(super) fn all() -> Result<Vec<Golden>> {
    let mut examples = golden::examples()?;
    for name in excluded()?.iter().flat_map(|row| &row.examples) {
        let place = examples.iter().position(|example| example.name == *name);
        examples
            .remove(place.ok_or_else(|| format!("examples.toml excludes `{name}`, which is no example"))?);
    }
    Ok(examples)
}

/// Writes the package; returns the path of its manifest.
pub(super) fn write() -> Result<PathBuf> {
    let directory = toolchain::target_dir().join(NAME);
    let sources = directory.join("src/bin");
    fs::create_dir_all(&sources)?;
    let examples = all()?;
    for example in &examples {
        let program = program(example)?;
        variants::write_if_changed(&sources.join(&example.name).with_extension("rs"), &program)?;
    }
    let names: BTreeSet<&str> = examples.iter().map(|example| example.name.as_str()).collect();
    variants::remove_others(&sources, &names)?;
    let manifest = directory.join("Cargo.toml");
    variants::write_if_changed(&manifest, &self::manifest()?)?;
    // Cargo adds this package and removes unneeded entries.
    fs::copy(toolchain::workspace().join("Cargo.lock"), directory.join("Cargo.lock"))?;
    Ok(manifest)
}

/// Returns the program of an example.
fn program(example: &Golden) -> Result<String> {
    let source = fs::read_to_string(&example.source)?;
    let mut program = String::from(
        "#![no_std]\n#![no_main]\n#![allow(warnings)]\n\n#[macro_use]\nextern crate punctual_bare;\n\
         extern crate programs as std;\n\n",
    );
    if !source.lines().any(|line| line.starts_with("fn main()")) {
        writeln!(program, "#[path = {:?}]\nmod example;", example.source)?;
        return Ok(program);
    }
    // The leading comment is valid only at the start of a file. Empty lines in its place keep the
    // line numbers of the example.
    let lines = source.lines().map(|line| if line.starts_with("//!") { "" } else { line });
    program.push_str("mod example {use programs::prelude::*;");
    lines.for_each(|line| {
        program.push_str(line);
        program.push('\n');
    });
    program.push_str(
        "    pub(crate) fn start() -> ! {\n        programs::own_main::end(main())\n    }\n}\n\n\
         punctual_bare::entry!(example::start);\n",
    );
    Ok(program)
}

/// Returns the manifest, with the dependencies and the profiles of the workspace for boards.
fn manifest() -> Result<String> {
    let mut command = cargo::command();
    command.current_dir(toolchain::workspace());
    let metadata = cargo::metadata_of(&mut command)?;
    let packages = metadata["packages"].as_array().ok_or("cargo names no packages")?;
    let package = packages.iter().find(|package| package["name"] == PROGRAMS);
    let package = package.ok_or("cargo does not know the package `programs`")?;
    let mut text = format!(
        "[package]\nname = \"{NAME}\"\nedition = {}\npublish = false\n\n[workspace]\n\n\
         [features]\nsemihosting = [\"{PROGRAMS}/semihosting\"]\n\n[dependencies]\n{PROGRAMS} = {{ path = {:?}, \
         features = [\"alloc\", \"app\", \"monitoring\", \"virtual-time\"] }}\n",
        package["edition"],
        toolchain::workspace().join(PROGRAMS),
    );
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    let of_apps = package["features"]["app"].as_array().ok_or("`programs` has no feature `app`")?;
    let is_of_apps = |dependency: &&Value| {
        let feature = format!("dep:{}", dependency["name"].as_str().unwrap_or_default());
        dependency["optional"] == false || of_apps.iter().any(|other| *other == *feature)
    };
    text.push_str(&variants::dependencies(dependencies.filter(is_of_apps))?);
    let workspace = fs::read_to_string(toolchain::workspace().join("Cargo.toml"))?;
    let mut workspace: toml::Table = toml::from_str(&workspace)?;
    workspace.retain(|key, _| key == "profile");
    text.push('\n');
    text.push_str(&toml::to_string(&workspace)?);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excludes_only_examples_with_a_reason_that_the_book_lists() {
        all().unwrap();
        let page = fs::read_to_string(cargo::root().join("docs/book/src/guides/boards.md")).unwrap();
        let table = page.split_once("| examples | requirement |").expect("the page has the table").1;
        let rows = table.lines().skip(2).map_while(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
        let listed: Vec<String> = rows.map(str::to_owned).collect();
        let excluded = excluded().unwrap();
        let expected: Vec<String> = excluded
            .iter()
            .map(|row| {
                assert!(!row.needs.trim().is_empty(), "{:?}: why", row.examples);
                let names: Vec<String> = row.examples.iter().map(|name| format!("`{name}`")).collect();
                format!("{} | {}", names.join(", "), row.needs)
            })
            .collect();
        assert_eq!(listed, expected);
        let count = golden::examples().unwrap().len();
        let run = count - excluded.iter().map(|row| row.examples.len()).sum::<usize>();
        assert!(page.contains(&format!("compiles {run} of the {count} examples")), "{run} of {count}");
        assert!(page.contains(&format!("The other {} need Linux", count - run)));
    }

    #[test]
    fn keeps_the_line_numbers_of_an_example_with_a_main() {
        let examples = all().unwrap();
        let example = examples.iter().find(|example| example.name == "until").unwrap();
        let source = fs::read_to_string(&example.source).unwrap();
        let program = program(example).unwrap();
        let line = |text: &str| text.lines().position(|line| line.starts_with("fn main()")).unwrap();
        let start = program.lines().position(|line| line.starts_with("mod example")).unwrap();
        assert_eq!(line(&program) - start, line(&source));
    }
}
