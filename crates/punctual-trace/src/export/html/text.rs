//! Text for HTML: escaped, and numbers in the form people read.

use std::fmt::{self, Display, Formatter, Write as _};

/// Text in which nothing is markup, neither between tags nor inside a quoted attribute. Names of threads are chosen by
/// whoever runs them.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                // Not allowed in HTML, not even as a character reference; and marks that turn the order of what follows.
                c if c.is_control() && !matches!(c, '\n' | '\t') => {
                    f.write_char(char::REPLACEMENT_CHARACTER)?
                }
                '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FFFE}' | '\u{FFFF}' => {
                    f.write_char(char::REPLACEMENT_CHARACTER)?;
                }
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

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

/// A count with its digits in groups of three.
pub(super) struct Grouped(pub(super) u64);

impl Display for Grouped {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                f.write_char('\u{202F}')?;
            }
            f.write_char(digit)?;
        }
        Ok(())
    }
}

/// Nanoseconds as microseconds with one decimal, so that columns can be compared.
pub(super) struct Micros(pub(super) u64);

impl Display for Micros {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // Rounded before it is split, so that 999.96 µs does not become 999.10 µs.
        let tenths = self.0 / 100 + u64::from(self.0 % 100 >= 50);
        write!(f, "{}.{}", Grouped(tenths / 10), tenths % 10)
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
    fn nothing_is_left_that_could_be_markup() {
        let text = Escaped("<b a=\"1\" b='2'>&\u{0}\u{202e}]]>").to_string();
        assert_eq!(text, "&lt;b a=&quot;1&quot; b=&#39;2&#39;&gt;&amp;\u{FFFD}\u{FFFD}]]&gt;");
    }

    #[test]
    fn quotes_come_in_pairs() {
        assert_eq!(Quoted("by `<a>/7` for 3").to_string(), "by <code>&lt;a&gt;/7</code> for 3");
        assert_eq!(Quoted("by ``</code>` for 3").to_string(), "by ``&lt;/code&gt;` for 3");
        assert_eq!(Quoted("by `` `x`").to_string(), "by <code></code> <code>x</code>");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(Grouped(1_234_567).to_string(), "1\u{202F}234\u{202F}567");
        assert_eq!(Micros(999_960).to_string(), "1\u{202F}000.0");
        assert_eq!(Micros(u64::MAX).to_string().split('.').count(), 2);
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
