//! A readable diff of two outputs.

use similar::TextDiff;

/// Unchanged lines shown around a change.
const CONTEXT: usize = 2;

/// A longer diff is truncated: its first lines show the cause.
const MAX_SHOWN: usize = 100;

/// Compares two texts line by line; returns `None` if they are equal to the byte.
///
/// Missing lines of `expected` begin with `-`, unexpected lines of `actual` with `+`.
pub fn diff(expected: &str, actual: &str) -> Option<String> {
    if expected == actual {
        return None;
    }
    let diff = TextDiff::from_lines(expected, actual).unified_diff().context_radius(CONTEXT).to_string();
    // Control characters are escaped: a stray carriage return must be visible.
    let mut lines = diff.split_terminator('\n').map(|line| format!("{}\n", line.escape_debug()));
    let mut text: String = lines.by_ref().take(MAX_SHOWN).collect();
    if lines.next().is_some() {
        text.push_str("... and more\n");
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
        let text = diff("1\n2\n3\n4\n5\n", "1\n2\n3\n4\nfive\n").unwrap();
        assert_eq!(text, "@@ -3,3 +3,3 @@\n 3\n 4\n-5\n+five\n");
    }

    #[test]
    fn shows_missing_final_newline_and_invisible_characters() {
        assert!(diff("a\n", "a").unwrap().contains("No newline at end of file"));
        assert!(diff("a\n", "a\r\n").unwrap().ends_with("-a\n+a\\r\n"));
    }

    #[test]
    fn cuts_long_diff() {
        let old: String = (0..3000).map(|i| format!("old {i}\n")).collect();
        let new: String = (0..3000).map(|i| format!("new {i}\n")).collect();
        let text = diff(&old, &new).unwrap();
        assert!(text.contains("-old 0\n"));
        assert_eq!(text.lines().count(), MAX_SHOWN + 1);
    }
}
