//! The drawings of `ARCHITECTURE.md`, compared with the manifests and the sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::pages::between;
use crate::{Result, files};

const PAGE: &str = "ARCHITECTURE.md";

/// Returns every difference between the drawings and the tree at `root`, one per line.
pub(super) fn problems(root: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(root.join(PAGE))?;
    let mut problems = Vec::new();
    let crates: Vec<&str> = between(&text, "<!-- drawing: crates -->\n```text\n", "```").collect();
    let paths: Vec<&str> = between(&text, "<!-- drawing: path -->\n```text\n", "```").collect();
    let modules: Vec<&str> = between(&text, "<!-- drawing: modules -->\n```text\n", "```").collect();
    if crates.len() != 1 || paths.len() != 2 || modules.len() != 1 {
        problems
            .push(format!("{PAGE}: expected one drawing of the crates, one of the modules, and two paths"));
    }
    for drawing in modules {
        check_modules(&root.join("crates/punctual/src"), drawing, &mut problems)?;
    }
    for drawing in crates {
        compare_crates(&edges(drawing), &manifests(root)?, &mut problems);
    }
    for drawing in paths {
        check_path(root, drawing, &mut problems);
    }
    Ok(problems)
}

type Edges = BTreeSet<(String, String)>;

/// Returns the dependencies that a drawing shows. A line without an arrow continues the previous
/// line; a crate without dependencies is an edge to the empty name.
fn edges(drawing: &str) -> Edges {
    let mut edges = Edges::new();
    let mut from = String::new();
    for line in drawing.lines() {
        let targets = match line.split_once('→') {
            Some((left, targets)) => {
                from = full_name(left.split_whitespace().last().unwrap_or_default());
                edges.insert((from.clone(), String::new()));
                targets
            }
            None => line,
        };
        let targets = targets.split(',').map(str::trim).filter(|target| !target.is_empty());
        edges.extend(targets.map(|target| (from.clone(), full_name(target))));
    }
    edges
}

fn full_name(name: &str) -> String {
    if name == "gimbal" || name.starts_with("punctual") { name.into() } else { format!("punctual-{name}") }
}

/// Returns the dependencies among the packages in `crates/` and the gimbal, including optional
/// ones.
fn manifests(root: &Path) -> Result<Edges> {
    let mut directories = vec![root.join("demos/gimbal")];
    for entry in fs::read_dir(root.join("crates"))? {
        directories.push(entry?.path());
    }
    let mut edges = Edges::new();
    for directory in directories {
        let manifest: toml::Table = fs::read_to_string(directory.join("Cargo.toml"))?.parse()?;
        let name = manifest["package"]["name"].as_str().ok_or("`package.name` is not a string")?;
        edges.insert((name.into(), String::new()));
        let of_targets = manifest.get("target").and_then(toml::Value::as_table).into_iter();
        let tables = of_targets
            .flat_map(|targets| targets.values())
            .filter_map(|target| target.get("dependencies"))
            .chain(manifest.get("dependencies"))
            .filter_map(toml::Value::as_table);
        let dependencies = tables.flat_map(toml::Table::keys).filter(|name| name.starts_with("punctual"));
        edges.extend(dependencies.map(|dependency| (name.to_owned(), dependency.clone())));
    }
    Ok(edges)
}

fn compare_crates(drawn: &Edges, actual: &Edges, problems: &mut Vec<String>) {
    let describe =
        |(from, to): &(String, String)| if to.is_empty() { from.clone() } else { format!("{from} → {to}") };
    problems
        .extend(actual.difference(drawn).map(|edge| format!("{PAGE}: the drawing lacks {}", describe(edge))));
    problems
        .extend(drawn.difference(actual).map(|edge| format!("{PAGE}: no manifest has {}", describe(edge))));
}

/// Checks each line that ends with a source file: the file must define the function that the line
/// names.
fn check_path(root: &Path, drawing: &str, problems: &mut Vec<String>) {
    for line in drawing.lines() {
        let mut words = line.split_whitespace().rev();
        let Some(file) = words.next().filter(|word| word.ends_with(".rs")) else { continue };
        let item = words.next().unwrap_or_default();
        let function = item.rsplit("::").next().unwrap_or_default();
        // A module in one file may continue in a directory of the same name.
        let directory = root.join(file.trim_end_matches(".rs"));
        let mut sources = vec![root.join(file)];
        sources.extend(fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()));
        let definition = format!("fn {function}");
        let defines = |source: &std::path::PathBuf| {
            fs::read_to_string(source).is_ok_and(|text| {
                text.match_indices(&definition)
                    .any(|(at, _)| text[at + definition.len()..].starts_with(['(', '<']))
            })
        };
        if !sources.iter().any(defines) {
            problems.push(format!("{PAGE}: {file} does not define {item}"));
        }
    }
}

/// Modules whose submodules belong to the modules of the same names at the root of the crate. The
/// crate calls the selected one `platform`.
const PLATFORMS: [&str; 2] = ["board", "process"];

/// Checks that the drawing lists the modules of the crate in `sources`, and that each of them names
/// only modules below it.
fn check_modules(sources: &Path, drawing: &str, problems: &mut Vec<String>) -> Result {
    let drawn: Vec<&str> = drawing.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let mut roots = vec![sources.to_owned()];
    let mut declarations = fs::read_to_string(sources.join("lib.rs"))?;
    for platform in PLATFORMS.map(|name| sources.join(name)).into_iter().filter(|root| root.exists()) {
        declarations += &fs::read_to_string(platform.join("mod.rs"))?;
        roots.push(platform);
    }
    let declared = declarations.lines().filter_map(|line| {
        let (visibility, name) = line.split_once("mod ")?;
        name.strip_suffix(';').filter(|_| ["", "pub ", "pub(crate) "].contains(&visibility))
    });
    let declared: BTreeSet<&str> = declared.filter(|name| !PLATFORMS.contains(name)).collect();
    let all: BTreeSet<&str> = drawn.iter().copied().collect();
    problems
        .extend(declared.difference(&all).map(|name| format!("{PAGE}: the drawing lacks the module {name}")));
    problems.extend(all.difference(&declared).map(|name| format!("{PAGE}: there is no module {name}")));
    for (level, module) in drawn.iter().enumerate() {
        let mut files = Vec::new();
        for root in &roots {
            let file = root.join(module).with_extension("rs");
            files.extend(file.exists().then_some(file));
            files.extend(files::below(&root.join(module), &["rs"])?);
        }
        for file in files {
            let text = files::read(&file)?;
            for name in named_modules(&text) {
                if !drawn[level..].contains(&name) {
                    let file = file.strip_prefix(sources).unwrap_or(&file).display();
                    problems.push(format!("{file}: `{module}` uses `crate::{name}`, which is not below it"));
                }
            }
        }
    }
    Ok(())
}

/// Returns the modules that the code names by paths from `crate`, except in macros for other
/// crates.
fn named_modules(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.flat_map(|line| {
        line.match_indices("crate::").filter(|(at, _)| !line[..*at].ends_with(['$', '_'])).map(
            |(at, found)| {
                let mut names = line[at + found.len()..].split("::").map(leading_name);
                let first = names.next().unwrap_or_default();
                let is_platform = first == "platform" || PLATFORMS.contains(&first);
                if is_platform { names.next().unwrap_or_default() } else { first }
            },
        )
    })
}

fn leading_name(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_a_module_that_uses_one_above_it() {
        let directory = crate::scratch::Scratch::new("modules-test").unwrap();
        let write =
            |name: &str, text: &str| fs::write(directory.path().join(name), text).expect("it is writable");
        write("lib.rs", "mod above;\npub mod below;\n");
        write("above.rs", "use crate::below::Item;\n");
        write(
            "below.rs",
            "//! See [`above`](crate::above).\nmacro_rules! m { () => { $crate::above::x() } }\n",
        );
        let check = |drawing| {
            let mut problems = Vec::new();
            check_modules(directory.path(), drawing, &mut problems).expect("the sources are readable");
            problems
        };
        assert!(check("above  first\nbelow  second\n").is_empty());
        let upward = ["above.rs: `above` uses `crate::below`, which is not below it"];
        assert_eq!(check("below\nabove\n"), upward);
        assert_eq!(check("above\nbelow\nmore\n"), ["ARCHITECTURE.md: there is no module more"]);
        assert_eq!(check("below\n"), ["ARCHITECTURE.md: the drawing lacks the module above"]);
        fs::create_dir(directory.path().join("process")).unwrap();
        write("process/mod.rs", "pub(crate) mod below;\npub(crate) mod linux;\n");
        write("process/below.rs", "use crate::process::linux::Item;\nuse crate::platform::above::Item;\n");
        assert_eq!(
            check("above\nbelow\nlinux\n"),
            ["process/below.rs: `below` uses `crate::above`, which is not below it"]
        );
    }

    #[test]
    fn reports_missing_and_invented_dependencies() {
        let drawn = edges("layer  gimbal → punctual,\n       trace\n       punctual-core →\n");
        let edge = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        let mut actual = drawn.clone();
        assert!(actual.remove(&edge("gimbal", "punctual-trace")));
        actual.insert(edge("punctual-core", "punctual-files"));
        let mut problems = Vec::new();
        compare_crates(&drawn, &actual, &mut problems);
        assert_eq!(
            problems,
            [
                "ARCHITECTURE.md: the drawing lacks punctual-core → punctual-files",
                "ARCHITECTURE.md: no manifest has gimbal → punctual-trace"
            ]
        );
    }

    #[test]
    fn reports_missing_functions() {
        let mut problems = Vec::new();
        let drawing =
            "a\n  check_path  xtask/src/book/drawings.rs\n  Book::vanish  xtask/src/book/drawings.rs\n";
        check_path(crate::cargo::root(), drawing, &mut problems);
        assert_eq!(problems, ["ARCHITECTURE.md: xtask/src/book/drawings.rs does not define Book::vanish"]);
    }
}
