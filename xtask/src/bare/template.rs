//! The template of a program for a board, `bare/template`: made into a package as `cargo generate` does, with the crates of this
//! repository, built and run in QEMU.

use std::fs;
use std::path::{Path, PathBuf};

use super::board::Board;
use super::emulator::Machine;
use super::test::TIME_LIMIT;
use super::toolchain;
use crate::process::End;
use crate::{Result, cargo};

/// What it is called, among the names of programs and as a package.
pub(super) const NAME: &str = "template";
const PACKAGE: &str = "generated";

/// Its crates that are not in a registry, as far as this repository is concerned.
const OURS: [(&str, &str); 5] = [
    ("punctual", "crates/punctual"),
    ("punctual-core", "crates/punctual-core"),
    ("punctual-macros", "crates/punctual-macros"),
    ("punctual-sync", "crates/punctual-sync"),
    ("punctual-bare", "bare/punctual-bare"),
];

/// Makes a package of it, builds that and compares what it prints.
pub(super) fn check(board: Board) -> Result {
    let package = generate(board)?;
    let machine = Machine::new(board, &toolchain::build_package(board, &package, PACKAGE)?)?;
    let outcome = machine.run_counted(&[], None, TIME_LIMIT)?;
    let expected: String =
        (1..=3).map(|count| format!("Hello from {}: {count}\n", board.full_name())).collect();
    let printed = outcome.stdout.replace('\r', "");
    match outcome.end {
        End::Exited(0) if printed == expected => Ok(()),
        end => Err(format!("{end}, and printed:\n{printed}").into()),
    }
}

/// Writes the package; returns its directory.
fn generate(board: Board) -> Result<PathBuf> {
    let template = toolchain::workspace().join("template");
    // Not below `bare`, whose settings for cargo would add to its own.
    let package = cargo::target_dir().join("bare-template");
    let values = [("project-name", PACKAGE), ("board", board.name())];
    for path in ["Cargo.toml", ".cargo/config.toml", "src/main.rs"] {
        let mut text = expand(&fs::read_to_string(template.join(path))?, &values)?;
        if path == "Cargo.toml" {
            text.push_str("\n[workspace]\n\n[patch.crates-io]\n");
            for (name, place) in OURS {
                let place = cargo::root().join(place);
                text.push_str(&format!("{name} = {{ path = {:?} }}\n", place.display().to_string()));
            }
        }
        write(&package.join(path), &text)?;
    }
    // The same versions of everything else, which have been fetched.
    write(&package.join("Cargo.lock"), &fs::read_to_string(toolchain::workspace().join("Cargo.lock"))?)?;
    Ok(package)
}

/// Only if it differs, so that cargo builds what has changed.
fn write(path: &Path, text: &str) -> Result {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    if fs::read_to_string(path).is_ok_and(|now| now == text) {
        return Ok(());
    }
    Ok(fs::write(path, text)?)
}

/// Does what `cargo generate` does by Liquid, as far as the template needs it: `{{name}}`, and `if`, `elsif`, `else`, `endif` with
/// comparisons joined by `or`.
fn expand(text: &str, values: &[(&str, &str)]) -> Result<String> {
    let value = |name: &str| {
        let found = values.iter().find(|(known, _)| *known == name.trim());
        found.map(|(_, value)| *value).ok_or_else(|| format!("the template has no `{name}`"))
    };
    let holds = |condition: &str| -> Result<bool> {
        for comparison in condition.split(" or ") {
            let (name, wanted) = comparison.split_once("==").ok_or("a condition compares")?;
            if value(name)? == wanted.trim().trim_matches('"') {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let mut expanded = String::new();
    let mut rest = text;
    // Whether this branch is taken, and whether one has been.
    let (mut is_taken, mut was_taken) = (true, true);
    while let Some(at) = ["{{", "{%"].iter().filter_map(|open| rest.find(open)).min() {
        let (before, tag) = rest.split_at(at);
        let close = if tag.starts_with("{{") { "}}" } else { "%}" };
        let (inside, behind) = tag[2..].split_once(close).ok_or("a tag is not closed")?;
        if is_taken {
            expanded.push_str(before);
        }
        match inside.trim().split_once(' ').unwrap_or((inside.trim(), "")) {
            ("if", condition) => {
                is_taken = holds(condition)?;
                was_taken = is_taken;
            }
            ("elsif", condition) => {
                is_taken = !was_taken && holds(condition)?;
                was_taken |= is_taken;
            }
            ("else", _) => is_taken = !was_taken,
            ("endif", _) => is_taken = true,
            (name, _) if is_taken && close == "}}" => expanded.push_str(value(name)?),
            _ => {}
        }
        rest = behind;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expands_values_and_conditions() {
        let text = r#"a {{board}} {% if board == "x" or board == "y" %}1{% elsif board == "z" %}{{ name }}{% else %}3{% endif %}."#;
        let with = |board| expand(text, &[("board", board), ("name", "2")]).unwrap();
        assert_eq!([with("y"), with("z"), with("w")], ["a y 1.", "a z 2.", "a w 3."]);
        assert!(expand("{{other}}", &[]).is_err());
    }
}
