//! A readable diff of two outputs.

use std::fmt::Write as _;

use similar::{ChangeTag, TextDiff};

/// Unchanged lines shown around a change.
const CONTEXT: usize = 2;

/// A longer diff is truncated: its first lines show the cause.
const MAX_SHOWN: usize = 100;

/// Compares two texts line by line; returns `None` if they are equal to the byte.
///
/// Missing lines of `expected` begin with `-`, unexpected lines of `actual` with `+`. A missing
/// newline at the end shows as a missing empty line.
pub fn diff(expected: &str, actual: &str) -> Option<String> {
    if expected == actual {
        return None;
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (expected.split('\n').collect(), actual.split('\n').collect());
    let diff = TextDiff::from_slices(&old, &new);
    let mut text = String::new();
    let mut shown = 0;
    let mut end = 0;
    for group in diff.grouped_ops(CONTEXT) {
        if group[0].old_range().start > end {
            text.push_str("...\n");
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            if shown == MAX_SHOWN {
                text.push_str("... and more\n");
                return Some(text);
            }
            shown += 1;
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            // Writing to a String cannot fail. Control characters are escaped: a stray carriage
            // return must be visible.
            let _ = writeln!(text, "{sign}{}", change.value().escape_debug());
        }
        end = group.last().map_or(end, |op| op.old_range().end);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_no_diff() {
        assert_eq!(diff("a\nb\n", "a\nb\n"), None);
        assert_eq!(diff("", ""), None);
    }

    #[test]
    fn shows_changed_line_with_context() {
        assert_eq!(diff("a\nb\nc\n", "a\nB\nc\n").unwrap(), " a\n-b\n+B\n c\n \n");
    }

    #[test]
    fn finds_moved_line() {
        assert_eq!(diff("x\na\nb\n", "a\nb\nx\n").unwrap(), "-x\n a\n b\n+x\n \n");
    }

    #[test]
    fn omits_lines_far_from_change() {
        assert_eq!(diff("1\n2\n3\n4\n5", "1\n2\n3\n4\nfive").unwrap(), "...\n 3\n 4\n-5\n+five\n");
    }

    #[test]
    fn shows_missing_final_newline() {
        assert_eq!(diff("a\n", "a").unwrap(), " a\n-\n");
    }

    #[test]
    fn shows_invisible_characters() {
        assert_eq!(diff("a", "a\r").unwrap(), "-a\n+a\\r\n");
    }

    #[test]
    fn cuts_long_diff() {
        let old: String = (0..3000).map(|i| format!("old {i}\n")).collect();
        let new: String = (0..3000).map(|i| format!("new {i}\n")).collect();
        let text = diff(&old, &new).unwrap();
        assert!(text.starts_with("-old 0\n"));
        assert_eq!(text.lines().count(), MAX_SHOWN + 1);
    }
}
