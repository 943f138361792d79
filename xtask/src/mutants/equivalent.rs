//! Mutations that change nothing a test could observe, each with an argument.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::mutation::Mutation;
use crate::Result;

/// One entry of `tests/equivalent.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Equivalent {
    file: String,
    function: String,
    /// The lines around the mutation as `cargo xtask mutants --list` shows them.
    original: String,
    mutated: String,
    pub(super) why: String,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct EquivalentMutants {
    equivalent: Vec<Equivalent>,
}

impl Equivalent {
    pub(super) fn is(&self, mutation: &Mutation) -> bool {
        let same = |a: &str, b: &str| a.split_whitespace().eq(b.split_whitespace());
        self.file == mutation.file
            && self.function == mutation.function
            && same(&self.original, &mutation.original)
            && same(&self.mutated, &mutation.mutated)
    }
}

/// Returns the entries of the package in this directory, whose mutations are `all`.
pub(super) fn of(package: &Path, all: &[&Mutation]) -> Result<Vec<Equivalent>> {
    let path = package.join("tests/equivalent.toml");
    if !path.exists() {
        return Ok(Vec::new());
    }
    let checked = fs::read_to_string(&path).map_err(Into::into).and_then(|table| parse(&table, all));
    checked.map_err(|error| format!("{}: {error}", path.display()).into())
}

fn parse(table: &str, all: &[&Mutation]) -> Result<Vec<Equivalent>> {
    let EquivalentMutants { equivalent: entries } = toml::from_str(table)?;
    for entry in &entries {
        let Equivalent { file, function, original, mutated, why } = entry;
        if why.trim().is_empty() {
            return Err(format!("{file}: {function}: `{mutated}`: `why` is empty").into());
        }
        if !all.iter().any(|mutation| entry.is(mutation)) {
            return Err(format!(
                "{file}: {function}: no mutation turns `{original}` into `{mutated}`; \
                 `cargo xtask mutants --list --file {file}` shows those that there are"
            )
            .into());
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::find;

    #[test]
    fn rejects_entry_without_mutation() {
        let text = "fn f(a: A) {\n    a.wake();\n}\n";
        let found = find::mutations("p", "src/x.rs", text).unwrap();
        let all: Vec<_> = found.iter().collect();
        let table = "[[equivalent]]\nfile = 'src/x.rs'\nfunction = 'f'\noriginal = '  a.wake();'\n\
                     mutated = ''\nwhy = 'nothing waits'\n";
        let entries = parse(table, &all).unwrap();
        assert_eq!(all.iter().filter(|mutation| entries[0].is(mutation)).count(), 1);
        let error = parse(&table.replace("'f'", "'g'"), &all).unwrap_err().to_string();
        assert!(error.contains("no mutation turns"), "{error}");
        assert!(parse(&table.replace("nothing waits", " "), &all).is_err(), "an argument is needed");
    }
}
