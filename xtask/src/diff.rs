//! A line diff, small because golden outputs are.

use std::fmt::Write as _;

/// Unchanged lines shown around a change.
const CONTEXT: usize = 2;

/// Above this many line pairs the outputs have nothing to do with each other, and the table would only eat memory.
const MAX_PAIRS: usize = 1 << 20;

/// A diff longer than this is cut: its first lines tell why.
const MAX_SHOWN: usize = 100;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Same,
    Missing,
    Unexpected,
}

/// Compares two texts; `None` if they are equal to the byte.
///
/// Lines of `expected` that are missing begin with `-`, unexpected lines of `actual` with `+`. A missing newline at
/// the end shows as a missing empty line.
pub(crate) fn diff(expected: &str, actual: &str) -> Option<String> {
    if expected == actual {
        return None;
    }
    let old: Vec<&str> = expected.split('\n').collect();
    let new: Vec<&str> = actual.split('\n').collect();

    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();

    let mut script: Vec<(Mark, &str)> = old[..head].iter().map(|&line| (Mark::Same, line)).collect();
    script.extend(middle(&old[head..old.len() - tail], &new[head..new.len() - tail]));
    script.extend(old[old.len() - tail..].iter().map(|&line| (Mark::Same, line)));
    Some(render(&script))
}

/// The edit script of the part where the texts differ, by longest common subsequence.
fn middle<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(Mark, &'a str)> {
    if old.len().saturating_mul(new.len()) > MAX_PAIRS {
        let missing = old.iter().map(|&line| (Mark::Missing, line));
        return missing.chain(new.iter().map(|&line| (Mark::Unexpected, line))).collect();
    }

    // common[i][j] is the length of the longest common subsequence of old[i..] and new[j..].
    let mut common = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = if old[i] == new[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }

    let mut script = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            script.push((Mark::Same, old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[i + 1][j] >= common[i][j + 1]) {
            script.push((Mark::Missing, old[i]));
            i += 1;
        } else {
            script.push((Mark::Unexpected, new[j]));
            j += 1;
        }
    }
    script
}

/// The changed lines with their context; `...` stands for the lines left out.
fn render(script: &[(Mark, &str)]) -> String {
    let near_change = |at: usize| {
        let around = &script[at.saturating_sub(CONTEXT)..script.len().min(at + CONTEXT + 1)];
        around.iter().any(|&(mark, _)| mark != Mark::Same)
    };

    let mut text = String::new();
    let mut skipping = false;
    let mut shown = 0;
    for (at, &(mark, line)) in script.iter().enumerate() {
        if !near_change(at) {
            skipping = true;
            continue;
        }
        if shown == MAX_SHOWN {
            text.push_str("... and more\n");
            return text;
        }
        if std::mem::take(&mut skipping) {
            text.push_str("...\n");
        }
        let sign = match mark {
            Mark::Same => ' ',
            Mark::Missing => '-',
            Mark::Unexpected => '+',
        };
        // Writing to a String cannot fail. Control characters are escaped: a stray carriage return must be seen.
        let _ = writeln!(text, "{sign}{}", line.escape_debug());
        shown += 1;
    }
    text
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
    fn shows_a_changed_line_between_its_neighbours() {
        assert_eq!(diff("a\nb\nc\n", "a\nB\nc\n").unwrap(), " a\n-b\n+B\n c\n \n");
    }

    #[test]
    fn finds_a_moved_line() {
        assert_eq!(diff("x\na\nb\n", "a\nb\nx\n").unwrap(), "-x\n a\n b\n+x\n \n");
    }

    #[test]
    fn leaves_out_what_is_far_from_a_change() {
        assert_eq!(diff("1\n2\n3\n4\n5", "1\n2\n3\n4\nfive").unwrap(), "...\n 3\n 4\n-5\n+five\n");
    }

    #[test]
    fn a_missing_final_newline_is_a_difference() {
        assert_eq!(diff("a\n", "a").unwrap(), " a\n-\n");
    }

    #[test]
    fn makes_invisible_characters_visible() {
        assert_eq!(diff("a", "a\r").unwrap(), "-a\n+a\\r\n");
    }

    #[test]
    fn unrelated_outputs_are_cut_short() {
        let old: String = (0..3000).map(|i| format!("old {i}\n")).collect();
        let new: String = (0..3000).map(|i| format!("new {i}\n")).collect();
        let text = diff(&old, &new).unwrap();
        assert!(text.starts_with("-old 0\n"));
        assert_eq!(text.lines().count(), MAX_SHOWN + 1);
    }
}
