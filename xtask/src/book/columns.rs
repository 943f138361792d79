//! Prose ends at column 100: Markdown, and the comments of sources and scripts.

use std::fs;
use std::path::Path;

use crate::{Result, process};

const COLUMNS: usize = 100;

/// Returns each line of prose in the tree at `root` that is longer.
pub(super) fn problems(root: &Path) -> Result<Vec<String>> {
    let names = process::git(&["ls-files", "*.md", "*.rs", "*.toml", "*.sh", "*.py"])?;
    let mut problems = Vec::new();
    for name in names.lines() {
        // A deleted file may still be in the index.
        let Ok(text) = fs::read_to_string(root.join(name)) else { continue };
        problems.extend(
            long_lines(name, &text)
                .map(|(number, line)| format!("{name}:{number}: prose beyond column {COLUMNS}: {line}")),
        );
    }
    Ok(problems)
}

/// Returns the long lines of prose, with their numbers. Tables, code, and lines that cannot be
/// broken, such as addresses, are none.
fn long_lines<'a>(name: &str, text: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    let mark: &[&str] = match Path::new(name).extension().and_then(|it| it.to_str()) {
        Some("rs") => &["//! ", "/// ", "// "],
        Some("md") => &[""],
        _ => &["# "],
    };
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let start = if mark == [""] { line } else { line.trim_start() };
        let prose = mark.iter().find_map(|mark| start.strip_prefix(mark))?;
        is_code ^= prose.trim_start().starts_with("```");
        let is_prose = !is_code && !prose.starts_with('|') && !prose.starts_with("    ");
        let breaks = prose.trim_start_matches(['*', '-', ' ']).contains(' ');
        let is_link = prose.starts_with('[') && prose.contains("]: ");
        (line.chars().count() > COLUMNS && is_prose && breaks && !is_link).then_some((at + 1, line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_long_prose_but_no_tables_code_or_addresses() {
        let long = "word ".repeat(20);
        let numbers = |name, text: &str| long_lines(name, text).map(|(number, _)| number).collect::<Vec<_>>();
        let page =
            format!("{long}\n\n{long}end\n| {long} |\n\n    {long}end\n```text\n{long}end\n```\n{long}end\n");
        assert_eq!(numbers("a.md", &page), [3, 10]);
        let source = format!("let text = \"{long}\";\n    /// {long}end\n    // <{}>\n", "a/".repeat(60));
        assert_eq!(numbers("a.rs", &source), [2]);
        assert_eq!(numbers("a.toml", &format!("# {long}end\nname = \"{long}\"\n")), [1]);
    }
}
