//! Compares the environment variables in the sources with those that the book lists.

use std::collections::BTreeSet;
use std::path::Path;

use crate::{Result, files};

/// Directories of sources.
const SOURCES: [&str; 6] = ["bare", "crates", "demos", "fuzz", "lab", "xtask"];

/// Prefixes of variables that tests and xtask commands pass to programs they start.
const INTERNAL: [&str; 2] = ["PUNCTUAL_TEST_", "PUNCTUAL_MUTANT"];

/// The page of the book that lists every variable.
const PAGE: &str = "docs/book/src/reference/environment.md";

/// Lists the variables that occur only on the page or only in the sources, one problem per line.
pub(super) fn problems(root: &Path) -> Result<Vec<String>> {
    let mut used = BTreeSet::new();
    for directory in SOURCES {
        for path in files::below(&root.join(directory), &["rs"])? {
            used.extend(quoted(&files::read(&path)?, '"'));
        }
    }
    let page = files::read(&root.join(PAGE))?;
    let listed = quoted(&page, '`').collect::<BTreeSet<_>>();
    let unlisted = used.difference(&listed).map(|name| format!("{PAGE}: does not list {name}"));
    let unused = listed.difference(&used).map(|name| format!("{PAGE}: lists {name}, which no source names"));
    Ok(unlisted.chain(unused).collect())
}

/// Returns the names of variables that are the only text between two `quote`s.
fn quoted(text: &str, quote: char) -> impl Iterator<Item = String> {
    let is_name = |part: &&str| {
        part.strip_prefix("PUNCTUAL_").is_some_and(|rest| {
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
        })
    };
    let is_internal = |part: &&str| INTERNAL.iter().any(|prefix| part.starts_with(prefix));
    text.split(quote).filter(is_name).filter(move |part| !is_internal(part)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo;

    #[test]
    fn page_lists_every_variable() {
        assert_eq!(problems(cargo::root()).expect("the sources can be read"), [""; 0]);
    }

    #[test]
    fn finds_quoted_variable_names() {
        let text = "`PUNCTUAL_A`, `PUNCTUAL_B=1`, `PUNCTUAL_TEST_C`, a PUNCTUAL_D";
        let a = ["PUNCTUAL", "A"].join("_");
        assert_eq!(quoted(text, '`').collect::<Vec<_>>(), [a]);
    }
}
