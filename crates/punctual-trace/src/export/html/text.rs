//! Sentences, names cut to their room, and priorities, in the form people read.

use std::fmt::{self, Display, Formatter};

use punctual_html::Escaped;

/// A sentence, escaped, in which what is between backquotes is marked as code. A name may have backquotes of its own: then
/// something else is marked, and tags still come in pairs.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.0.matches('`').count().is_multiple_of(2) {
            return Escaped(self.0).fmt(f);
        }
        for (index, part) in self.0.split('`').enumerate() {
            match index % 2 {
                0 => Escaped(part).fmt(f)?,
                _ => write!(f, "<code>{}</code>", Escaped(part))?,
            }
        }
        Ok(())
    }
}

/// As much of a text as has room, in units of a drawing at 12 units a line.
pub(super) fn shortened(text: &str, room: f64) -> String {
    let most = (room / CHARACTER) as usize;
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// How wide a text is, rather too much: fonts differ.
pub(super) fn width(text: &str) -> f64 {
    text.chars().count() as f64 * CHARACTER
}

const CHARACTER: f64 = 6.8;

/// A kernel priority in the words of `chrt`: 0 to 98 are SCHED_FIFO or SCHED_RR, 99 to 1.
pub(super) fn priority(kernel: i32) -> String {
    match kernel {
        ..0 => "SCHED_DEADLINE".into(),
        0..=98 => format!("real-time {}", 99 - kernel),
        99 => "real-time 0".into(),
        nice => format!("nice {}", nice - 120),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_come_in_pairs() {
        assert_eq!(Quoted("by `<a>/7` for 3").to_string(), "by <code>&lt;a&gt;/7</code> for 3");
        assert_eq!(Quoted("by ``</code>` for 3").to_string(), "by ``&lt;/code&gt;` for 3");
        assert_eq!(Quoted("by `` `x`").to_string(), "by <code></code> <code>x</code>");
    }

    #[test]
    fn priorities_are_those_of_chrt() {
        assert_eq!(
            ["real-time 89", "nice 0", "SCHED_DEADLINE"],
            [10, 120, -1].map(priority).each_ref().map(String::as_str)
        );
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        assert_eq!(shortened("kworker", 100.0), "kworker");
        assert_eq!(shortened("ööööööööö", 34.0), "öööö…");
        assert_eq!(shortened("abc", 0.0), "…");
    }
}
