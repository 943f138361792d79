//! `cargo xtask check book`: checks that the book and the README show tested code, and builds the
//! book with mdBook.
//!
//! mdBook itself ignores a missing included file, anchor or link, so [`pages`] checks these first.

mod columns;
mod drawings;
mod pages;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use punctual_process::child::BoundedCommand;

use crate::process::{INSTALL_LIMIT, TOOL_LIMIT};
use crate::{Result, cargo};

/// The address of the public repository, once it exists: the book then links to it, and manifests
/// must name it.
pub(crate) const REPOSITORY: Option<&str> = None;

/// The version of mdBook to install if none is installed.
const VERSION: &str = "0.5.4";

pub(crate) fn run() -> Result {
    check()?;
    build(&mdbook()?)
}

fn check() -> Result {
    let mut problems = pages::problems(cargo::root())?;
    problems.extend(columns::problems(cargo::root())?);
    problems.extend(variables::problems(cargo::root())?);
    problems.extend(drawings::problems(cargo::root())?);
    if problems.is_empty() {
        return Ok(());
    }
    Err(format!("the book has errors:\n{}", problems.join("\n")).into())
}

/// Returns an mdBook of the same minor version: an installed one, or else one built into the target
/// directory.
fn mdbook() -> Result<PathBuf> {
    let tools = cargo::target_dir().join("tools");
    let own = tools.join("bin/mdbook");
    if let Some(found) = [PathBuf::from("mdbook"), own.clone()].into_iter().find(|program| serves(program)) {
        return Ok(found);
    }
    println!("building mdBook {VERSION} in {}, which takes a minute or two", tools.display());
    let mut install = cargo::command();
    install.args(["install", "mdbook", "--locked", "--quiet", "--version", VERSION]);
    install.args(["--no-default-features", "--features", "search", "--profile", "dev"]);
    install.arg("--root").arg(&tools).arg("--target-dir").arg(tools.join("build"));
    // Saves half of the build time.
    install.env("CARGO_PROFILE_DEV_DEBUG", "0").env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS");
    match install.stdin(Stdio::null()).status_within(INSTALL_LIMIT)? {
        status if status.success() => Ok(own),
        status => Err(format!("mdBook could not be installed: {status} from {install:?}").into()),
    }
}

fn serves(program: &Path) -> bool {
    let minor = VERSION.rsplit_once('.').map_or(VERSION, |(minor, _)| minor);
    let output = Command::new(program).arg("--version").output_within(TOOL_LIMIT);
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(&format!("v{minor}.")))
}

/// Builds the book; treats the warnings of mdBook as errors.
fn build(mdbook: &Path) -> Result {
    let target = cargo::target_dir().join("book");
    let mut command = Command::new(mdbook);
    command.arg("build").arg(cargo::root().join("docs/book")).arg("--dest-dir").arg(&target);
    if let Some(repository) = REPOSITORY {
        let edit = format!("{repository}/edit/main/docs/book/{{path}}");
        command.env("MDBOOK_OUTPUT__HTML__GIT_REPOSITORY_URL", repository);
        command.env("MDBOOK_OUTPUT__HTML__EDIT_URL_TEMPLATE", edit);
    }
    // Prints only warnings and errors.
    command.env("MDBOOK_LOG", "warn").stdin(Stdio::null());
    let output =
        command.output_within(TOOL_LIMIT).map_err(|error| format!("{}: {error}", mdbook.display()))?;
    let printed =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    if !output.status.success() || !printed.trim().is_empty() {
        return Err(format!("{} from {command:?}, which printed:\n{printed}", output.status).into());
    }
    println!("the book is in {}", target.join("index.html").display());
    Ok(())
}

#[cfg(test)]
#[test]
fn pages_and_drawings_match_the_tree() {
    check().expect("the book has no errors");
}

/// Compares the environment variables in the sources with those that the book lists.
mod variables {
    use std::collections::BTreeSet;
    use std::path::Path;

    use crate::{Result, files};

    /// Directories of sources.
    const SOURCES: [&str; 6] = ["bare", "crates", "demos", "fuzz", "lab", "xtask"];

    /// Prefixes of variables that tests and xtask commands pass to programs they start.
    const INTERNAL: [&str; 2] = ["PUNCTUAL_TEST_", "PUNCTUAL_MUTANT"];

    /// The page of the book that lists every variable.
    const PAGE: &str = "docs/book/src/reference/environment.md";

    /// Lists the variables that occur only on the page or only in the sources, one problem per
    /// line.
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
        let unused =
            listed.difference(&used).map(|name| format!("{PAGE}: lists {name}, which no source names"));
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

        #[test]
        fn finds_quoted_variable_names() {
            let text = "`PUNCTUAL_A`, `PUNCTUAL_B=1`, `PUNCTUAL_TEST_C`, a PUNCTUAL_D";
            let a = ["PUNCTUAL", "A"].join("_");
            assert_eq!(quoted(text, '`').collect::<Vec<_>>(), [a]);
        }
    }
}
