//! Lists, and text of a given width.
//!
//! ```
//! use punctual_report::text::{listed, shortened, wrapped};
//!
//! assert_eq!([listed(&["a", "b", "c"]), listed(&["a"])], ["a, b and c", "a"]);
//! assert_eq!(shortened("kworker/u8:2-events/4711", 9), "kwor…4711");
//! assert_eq!(wrapped("R  ", "took 2 122 µs in all", 3, 16), "R  took 2 122 µs\n   in all\n");
//! ```

use std::fmt::Write as _;

/// Shortens a text to at most this many characters by removing its middle.
///
/// Names differ in their ends, where numbers are, as often as in their beginnings.
#[must_use]
pub fn shortened(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let tail = width.saturating_sub(1) / 2;
    let head = width.saturating_sub(1) - tail;
    text.chars().take(head).chain(['…']).chain(text.chars().skip(length - tail)).collect()
}

/// Formats a list: "a, b and c".
#[must_use]
pub fn listed(parts: &[impl AsRef<str>]) -> String {
    let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
    match parts.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        one => one.concat(),
    }
}

/// Breaks text into lines of at most `width` characters; all but the first are indented. A number
/// and its unit stay on one line.
#[must_use]
pub fn wrapped(first: &str, text: &str, indent: usize, width: usize) -> String {
    let mut out = first.to_owned();
    let mut column = first.chars().count();
    let mut fresh = true;
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        let mut word = word.to_owned();
        while let Some(next) = words.next_if(|next| continues_number(&word, next)) {
            word = word + " " + next;
        }
        let length = word.chars().count();
        if !fresh && column + 1 + length > width {
            let _ = write!(out, "\n{:indent$}", "");
            column = indent;
            fresh = true;
        }
        if !fresh {
            out.push(' ');
            column += 1;
        }
        out += &word;
        column += length;
        fresh = false;
    }
    out.push('\n');
    out
}

/// Units that belong on the line of their number.
const UNITS: [&str; 18] = [
    "ns", "µs", "ms", "s", "%", "×", "‰", "B", "KiB", "MiB", "GiB", "Hz", "kHz", "MHz", "GHz", "rad", "mrad",
    "µrad",
];

/// Returns `true` if `after` continues the number at the end of `before`: with a unit, or with
/// three more digits.
pub(crate) fn continues_number(before: &str, after: &str) -> bool {
    let end = after.find(|c: char| !c.is_alphanumeric() && !"%×‰".contains(c)).unwrap_or(after.len());
    let word = &after[..end];
    let is_thousand = word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    before.ends_with(|last: char| last.is_ascii_digit()) && (is_thousand || UNITS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elides_middle_of_long_names() {
        assert_eq!(shortened("abcde", 5), "abcde");
        assert_eq!(shortened("ööööööööö", 5), "öö…öö");
        assert_eq!([0, 1, 2].map(|width| shortened("abc", width)), ["…", "…", "a…"]);
    }

    #[test]
    fn breaks_lines_between_words() {
        assert_eq!(wrapped("R  ", "one two three", 3, 10), "R  one two\n   three\n");
        assert_eq!(wrapped("", "of 2 122 µs, or 1 s", 2, 12), "of 2 122 µs,\n  or 1 s\n");
        assert_eq!(wrapped("R  ", "overlongwords stay", 3, 8), "R  overlongwords\n   stay\n");
    }
}
