//! `cargo xtask traces --seeds`: shows that the tests of traces can fail, by putting bugs into a copy of the code one by one.

use crate::loom;
use crate::seeds;
use crate::working_copy::WorkingCopy;
use crate::{Result, cargo};

/// The packages with tables of bugs, and the first of their working copies: their workspaces have other members than those of
/// other packages.
const TABLES: [(&str, usize); 2] = [("punctual-trace", 200), ("punctual-cli", 300)];

pub(super) fn run(names: &[String]) -> Result {
    let mut tables = Vec::new();
    for (package, first) in TABLES {
        let of_package = seeds::of(&cargo::root().join("crates").join(package))?;
        tables.push((package, first, of_package));
    }
    let known =
        |name: &String| tables.iter().any(|(_, _, seeds)| seeds.iter().any(|seed| seed.name == *name));
    if let Some(name) = names.iter().find(|name| !known(name)) {
        return Err(format!("no seeded bug is named `{name}`").into());
    }
    // A bug that one table does not catch keeps nobody from hearing of the others.
    let mut failed = Vec::new();
    for (package, first, seeds) in tables {
        let wanted = |name: &String| names.is_empty() || names.contains(name);
        let mut seeds: Vec<_> =
            seeds.into_iter().filter(|seed| wanted(&seed.name)).map(|seed| (package, seed)).collect();
        if seeds.is_empty() {
            continue;
        }
        loom::choose(&mut seeds, &[])?;
        if let Err(error) = loom::find_all(WorkingCopy::new(first, &[package])?, first, &[package], &seeds) {
            failed.push(format!("{package}: {error}"));
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(failed.join("\n").into()),
    }
}
