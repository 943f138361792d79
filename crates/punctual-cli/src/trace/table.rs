//! Tables and paragraphs, of bounded width.

use std::fmt::Write;

use punctual_trace::explain::grouped;
use punctual_trace::stats::{Summary, TaskStats, Term};

/// How wide a number is: eight digits with spaces between thousands, the point, three digits, and what may stand before it.
const NUMBER: usize = 14;

/// A length of time in µs, three significant digits or all before the point.
pub(crate) fn micros(ns: u64) -> String {
    let decimals = match ns {
        0 => 0,
        1..1_000 => 3,
        1_000..9_995 => 2,
        9_995..99_950 => 1,
        _ => 0,
    };
    // Rounds to a unit of that many decimals, without overflow.
    let step = 10_u64.pow(3 - decimals);
    let units = ns / step + u64::from(ns % step >= step.div_ceil(2));
    let scale = 10_u64.pow(decimals);
    let mut text = grouped(units / scale);
    if decimals > 0 {
        let _ = write!(text, ".{:0width$}", units % scale, width = decimals as usize);
    }
    text
}

/// A number in a column of [`NUMBER`], so that the points of a column are below each other.
fn cell(text: &str) -> String {
    let fraction = text.split_once('.').map_or(0, |(_, digits)| 1 + digits.len());
    format!("{text:>width$}{:pad$}", "", width = NUMBER - 4 + fraction, pad = 4 - fraction)
}

/// Text in a column of that width; its middle is left out if it is longer.
pub(crate) fn shortened(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return format!("{text:width$}");
    }
    // Names differ in their ends, where numbers are, as often as in their beginnings.
    let tail = (width - 1) / 2;
    let head: String = text.chars().take(width - 1 - tail).collect();
    let tail: String = text.chars().skip(length - tail).collect();
    format!("{head}…{tail}")
}

/// The rows of one task: a line for each term.
pub(crate) fn task(stats: &TaskStats) -> String {
    let mut out = String::new();
    let head = ["max", "p99.9", "p50", "mean"].map(|name| format!("{name:>10}    ")).concat();
    let _ = writeln!(out, "  µs{head}    jobs");
    for term in Term::ALL {
        let summary = stats.summary(term);
        let _ = writeln!(out, "{}", row(term, &summary).trim_end());
    }
    out
}

fn row(term: Term, summary: &Summary) -> String {
    let Summary { max, p999, p50, mean, count, bounded, unknown } = *summary;
    let mut out = format!("  {:<2}", term.letter());
    let known = |ns: u64| match (count, bounded) {
        (0, _) => cell("–"),
        (_, 0) => cell(&micros(ns)),
        // Of bounded values the upper bounds are what is summed up.
        _ => cell(&format!("≤ {}", micros(ns))),
    };
    out.extend([max, p999, p50, mean.round() as u64].map(known));
    let _ = write!(out, "{:>8}", grouped(count));
    let notes = [(bounded, "bounded"), (unknown, "unknown")];
    let notes = notes.map(|(jobs, how)| match jobs {
        0 => String::new(),
        jobs if jobs == count + unknown => format!("  {how}"),
        jobs => format!("  {} {how}", grouped(jobs)),
    });
    out + &notes.concat()
}

/// Breaks text into lines of at most `width` characters, of which all but the first are indented. Numbers stay in one piece
/// with their units.
pub(crate) fn wrapped(first: &str, text: &str, indent: usize, width: usize) -> String {
    let mut out = first.to_owned();
    let mut column = first.chars().count();
    let mut fresh = true;
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        let mut word = word.to_owned();
        while let Some(next) = words.next_if(|next| belongs(&word, next)) {
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

/// Whether a word continues a number.
fn belongs(number: &str, next: &str) -> bool {
    let unit = next.trim_end_matches([',', ';', '.', ':']);
    let is_thousand = next.len() >= 3 && next.bytes().all(|byte| byte.is_ascii_digit());
    number.ends_with(|last: char| last.is_ascii_digit())
        && (is_thousand || ["ns", "µs", "ms", "s"].contains(&unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_or_all_before_the_point() {
        let texts = [
            (0, "0"),
            (7, "0.007"),
            (999, "0.999"),
            (1_000, "1.00"),
            (9_994, "9.99"),
            (9_995, "10.0"),
            (99_949, "99.9"),
            (99_950, "100"),
            (1_812_400, "1 812"),
            (1_234_567_890, "1 234 568"),
            (u64::MAX, "18 446 744 073 709 552"),
        ];
        for (ns, text) in texts {
            assert_eq!(micros(ns), text);
        }
    }

    #[test]
    fn points_are_below_each_other() {
        let cells = ["0", "0.007", "10.0", "≤ 1.00", "1 234 568"].map(cell);
        assert_eq!(
            cells,
            ["         0    ", "         0.007", "        10.0  ", "       ≤ 1.00 ", " 1 234 568    "]
        );
    }

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(shortened("abc", 5), "abc  ");
        assert_eq!(shortened("abcde", 5), "abcde");
        assert_eq!(shortened("kworker/u8:2-events/4711", 9), "kwor…4711");
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("R  ", "one two three", 3, 10), "R  one two\n   three\n");
        assert_eq!(wrapped("", "of 2 122 µs, or 1 s", 2, 12), "of 2 122 µs,\n  or 1 s\n");
        assert_eq!(wrapped("R  ", "overlongwords stay", 3, 8), "R  overlongwords\n   stay\n");
    }
}
