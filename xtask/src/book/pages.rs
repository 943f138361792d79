//! The references in the pages of the book and the README: included files, listings, links.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Result, files};

/// Directories of the programs from which listings are taken.
const PROGRAMS: [&str; 3] = ["/examples/", "bare/programs/src/bin/", "bare/amp-programs/src/bin/"];

/// Pages whose Rust code is compiled and run as doctests of a crate.
const DOCTESTS: [&str; 1] = ["guides/kernel.md"];

/// The directories of the repository, with which paths in code style begin.
const DIRECTORIES: [&str; 8] = ["bare/", "crates/", "demos/", "docs/", "extras/", "fuzz/", "lab/", "xtask/"];

/// Returns every problem of the pages in the tree at `root`, one per line.
pub(super) fn problems(root: &Path) -> Result<Vec<String>> {
    let book = root.join("docs/book/src");
    let mut problems = Vec::new();
    let summary = fs::read_to_string(book.join("SUMMARY.md"))?;
    let listed: HashSet<PathBuf> = links(&summary).map(|link| book.join(link)).collect();
    for path in &files::below(&book, &["md"])? {
        let page = Page::read(root, path.clone())?;
        page.check_includes(&mut problems);
        page.check_programs(&mut problems)?;
        page.check_links(&mut problems)?;
        page.check_paths(&mut problems);
        if !path.ends_with("SUMMARY.md") && !listed.contains(path) {
            problems.push(format!("{}: SUMMARY.md does not list it", page.name()));
        }
    }

    let outputs = Page::read(root, book.join("reference/outputs.md"))?;
    for path in files::below(&root.join("docs"), &["json"])? {
        let name = path.strip_prefix(root)?.display().to_string();
        if name.ends_with("-schema.json") && !outputs.text.contains(&format!("`{name}`")) {
            problems.push(format!("{}: does not list {name}", outputs.name()));
        }
    }

    let readme = Page::read(root, root.join("README.md"))?;
    readme.check_listings(&mut problems);
    readme.check_links(&mut problems)?;
    let oldest = oldest_rust(&fs::read_to_string(root.join("Cargo.toml"))?)?;
    for manifest in ["bare/Cargo.toml", "extras/Cargo.toml"] {
        let other = oldest_rust(&fs::read_to_string(root.join(manifest))?)?;
        if other != oldest {
            problems.push(format!("{manifest}: `rust-version` is {other}, and {oldest} in Cargo.toml"));
        }
    }
    for page in [&readme, &Page::read(root, book.join("introduction.md"))?] {
        if !page.text.contains(&format!("{oldest} or newer")) {
            problems.push(format!("{}: does not state that Rust {oldest} or newer is needed", page.name()));
        }
    }
    Ok(problems)
}

/// Returns the `rust-version` of a manifest.
fn oldest_rust(manifest: &str) -> Result<String> {
    let manifest: toml::Table = manifest.parse()?;
    let version = manifest["workspace"]["package"]["rust-version"].as_str();
    Ok(version.ok_or("`rust-version` is no text")?.to_owned())
}

struct Page<'a> {
    root: &'a Path,
    path: PathBuf,
    text: String,
}

impl<'a> Page<'a> {
    fn read(root: &'a Path, path: PathBuf) -> Result<Self> {
        let text = files::read(&path)?;
        Ok(Self { root, path, text })
    }

    fn name(&self) -> String {
        self.path.strip_prefix(self.root).unwrap_or(&self.path).display().to_string()
    }

    fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(self.root)
    }

    /// Checks the listings of the book, which must be included as a whole or by an anchor. Rust
    /// code must come from a program that is built and run, or from a page that is itself a
    /// doctest.
    fn check_includes(&self, problems: &mut Vec<String>) {
        for include in between(&self.text, "{{#include ", "}}") {
            if let Err(problem) = excerpt(&self.directory().join(path_of(include)), anchor_of(include)) {
                problems.push(format!("{}: {{{{#include {include}}}}}: {problem}", self.name()));
            }
        }
        if DOCTESTS.iter().any(|page| self.path.ends_with(page)) {
            return;
        }
        for listing in between(&self.text, "```rust\n", "```") {
            let source = between(listing, "{{#include ", "}}").next().unwrap_or_default();
            let is_built = PROGRAMS.iter().any(|directory| path_of(source).contains(directory));
            if !is_built || listing.lines().count() != 1 {
                problems.push(format!("{}: Rust that is not included from an example", self.name()));
            }
        }
    }

    /// Checks that a page with an app shows the whole program, so that it compiles as printed.
    fn check_programs(&self, problems: &mut Vec<String>) -> Result {
        let mut programs = BTreeMap::new();
        for include in between(&self.text, "{{#include ", "}}") {
            // `check_includes` reports missing excerpts.
            let shown = excerpt(&self.directory().join(path_of(include)), anchor_of(include));
            *programs.entry(path_of(include)).or_insert_with(String::new) +=
                &(shown.unwrap_or_default() + "\n");
        }
        for (program, shown) in programs.iter().filter(|(_, shown)| shown.contains("#[punctual::app")) {
            let shown: HashSet<&str> = shown.lines().collect();
            let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
            let source = files::read(&self.directory().join(program))?;
            if let Some(hidden) = source.lines().filter(is_code).find(|line| !shown.contains(line)) {
                problems.push(format!("{}: {program} lacks the line `{}`", self.name(), hidden.trim()));
            }
        }
        Ok(())
    }

    /// Checks that each listing of the README, which cannot include files, equals the excerpt that
    /// the comment before it names.
    fn check_listings(&self, problems: &mut Vec<String>) {
        for listing in between(&self.text, "<!-- listing: ", "\n```\n") {
            let (source, listing) = listing.split_once(" -->\n```").unwrap_or((listing, ""));
            let shown = listing.split_once('\n').map_or("", |(_, shown)| shown);
            match excerpt(&self.root.join(path_of(source)), anchor_of(source)) {
                Ok(wanted) if wanted.trim_end() == shown.trim_end() => {}
                Ok(_) => problems.push(format!("{}: the listing differs from {source}", self.name())),
                Err(problem) => problems.push(format!("{}: {source}: {problem}", self.name())),
            }
        }
    }

    /// Checks that paths in code style exist.
    fn check_paths(&self, problems: &mut Vec<String>) {
        let is_path = |text: &&str| {
            DIRECTORIES.iter().any(|directory| text.starts_with(directory))
                && !text.contains(|letter: char| letter.is_whitespace() || "<>*{}…".contains(letter))
        };
        for path in self.text.split('`').filter(is_path) {
            if !self.root.join(path_of(path)).exists() {
                problems.push(format!("{}: `{path}` does not exist", self.name()));
            }
        }
    }

    /// Checks links to files and to Markdown headings. A page of the book may link only to other
    /// pages: the rendered book contains no other part of this repository.
    fn check_links(&self, problems: &mut Vec<String>) -> Result {
        let book = self.root.join("docs/book/src");
        for link in links(&self.text) {
            let (target, heading) = link.split_once('#').map_or((link, None), |(t, h)| (t, Some(h)));
            if target.contains("://") {
                continue;
            }
            let file = if target.is_empty() { self.path.clone() } else { self.directory().join(target) };
            let Ok(file) = fs::canonicalize(file) else {
                problems.push(format!("{}: {link} does not exist", self.name()));
                continue;
            };
            if self.path.starts_with(&book) && !file.starts_with(&book) {
                problems.push(format!(
                    "{}: {link} leaves the book; name the path in code style instead",
                    self.name()
                ));
            }
            let Some(heading) = heading else { continue };
            if !headings(&fs::read_to_string(&file)?).any(|slug| slug == heading) {
                problems.push(format!("{}: {link} has no such heading", self.name()));
            }
        }
        Ok(())
    }
}

/// Returns the text between each `open` and the next `close`.
pub(super) fn between<'a>(text: &'a str, open: &'a str, close: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(open).skip(1).filter_map(move |rest| rest.split_once(close)).map(|(inner, _)| inner)
}

/// Returns the targets of inline links and of link definitions (`[name]: target`).
fn links(text: &str) -> impl Iterator<Item = &str> {
    let definitions = text.lines().filter(|line| line.starts_with('['));
    between(text, "](", ")").chain(definitions.filter_map(|line| Some(line.split_once("]: ")?.1.trim())))
}

/// Returns the headings of a page in the form that links use.
fn headings(page: &str) -> impl Iterator<Item = String> {
    let spelled = |line: &str| -> String {
        let retained = line.trim_start_matches('#').trim().chars();
        let retained =
            retained.filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
        retained.map(|letter| if letter == ' ' { '-' } else { letter.to_ascii_lowercase() }).collect()
    };
    page.lines().filter(|line| line.starts_with('#')).map(spelled)
}

fn path_of(reference: &str) -> &str {
    reference.split_once(':').map_or(reference, |(path, _)| path)
}

fn anchor_of(reference: &str) -> Option<&str> {
    reference.split_once(':').map(|(_, anchor)| anchor)
}

/// Returns the text of a file, or the part that an anchor marks, without the marker lines, as
/// mdBook includes it.
fn excerpt(file: &Path, anchor: Option<&str>) -> Result<String> {
    let text = files::read(file)?;
    let marks = |line: &str, mark: &str| {
        let name = line.split_once(mark)?.1.split_whitespace().next()?;
        Some(name.to_owned())
    };
    let mut inside = anchor.is_none();
    let mut lines = Vec::new();
    for line in text.lines() {
        if let Some(name) = marks(line, "ANCHOR: ") {
            inside |= anchor == Some(&name);
        } else if let Some(name) = marks(line, "ANCHOR_END: ") {
            inside &= anchor != Some(&name);
        } else if inside {
            lines.push(line);
        }
    }
    if lines.iter().all(|line| line.trim().is_empty()) {
        return Err(format!("nothing is there under {}", anchor.unwrap_or("that name")).into());
    }
    Ok(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo;

    /// Returns the problems of a page with this text, used as the book's first chapter.
    fn printed(text: &str) -> Vec<String> {
        let path = cargo::root().join("docs/book/src/tutorial/1-spawn.md");
        let page = Page { root: cargo::root(), path, text: text.to_owned() };
        let mut problems = Vec::new();
        page.check_includes(&mut problems);
        page.check_programs(&mut problems).expect("the programs can be read");
        page.check_links(&mut problems).expect("the pages can be read");
        page.check_paths(&mut problems);
        page.check_listings(&mut problems);
        problems
    }

    #[test]
    fn reports_empty_includes() {
        let examples = "../../../../crates/punctual/examples";
        assert_eq!(printed(&format!("{{{{#include {examples}/spawn.rs:app}}}}")), [""; 0]);
        for missing in ["none.rs", "spawn.rs:none"] {
            let printed = printed(&format!("{{{{#include {examples}/{missing}}}}}"));
            assert!(printed.len() == 1 && printed[0].contains(missing), "{printed:?}");
        }
    }

    #[test]
    fn reports_untested_rust_listings() {
        let include = "{{#include ../../../../crates/punctual/examples/spawn.rs:app}}";
        assert_eq!(printed(&format!("```rust\n{include}\n```\n")), [""; 0]);
        assert_eq!(printed("```rust\nfn f() {}\n```\n").len(), 1);
        assert_eq!(printed(&format!("```rust\n{include}\nfn f() {{}}\n```\n")).len(), 1);
    }

    #[test]
    fn reports_incomplete_programs() {
        let page = |anchors: &[&str]| {
            let include = "{{#include ../../../../crates/punctual/examples/testing.rs:";
            printed(&anchors.iter().map(|anchor| format!("{include}{anchor}}}}}\n")).collect::<String>())
        };
        assert_eq!(page(&["app", "run", "tests"]), [""; 0]);
        // Parts without the app are explained as such.
        assert_eq!(page(&["run"]), [""; 0]);
        let printed = page(&["app", "tests"]);
        assert!(printed.len() == 1 && printed[0].contains("`fn run("), "{printed:?}");
    }

    #[test]
    fn reports_broken_links() {
        let good = "[a](2-priorities.md) [b](../porting/rtic.md#constructs)";
        assert_eq!(printed(&format!("{good} [d](https://rtic.rs)")), [""; 0]);
        for link in ["none.md", "../porting/rtic.md#none", "#none", "../../../../README.md"] {
            assert_eq!(printed(&format!("[a]({link})")).len(), 1, "{link}");
        }
    }

    #[test]
    fn reports_missing_paths() {
        assert_eq!(printed("`crates/punctual/src/lib.rs`, `bare/<name>.rs`, `crates and more`"), [""; 0]);
        assert_eq!(printed("`crates/punctual/src/none.rs`").len(), 1);
    }

    #[test]
    fn reports_outdated_listings() {
        let golden = "crates/punctual/examples/expected/spawn.txt";
        assert_eq!(printed(&format!("<!-- listing: {golden} -->\n```text\ninit\nfoo\n```\n")), [""; 0]);
        assert_eq!(printed(&format!("<!-- listing: {golden} -->\n```text\ninit\n```\n")).len(), 1);
    }
}
