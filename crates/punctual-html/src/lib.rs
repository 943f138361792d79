//! What Punctual's pages of HTML share: text that cannot become markup, and numbers in the form people read.
//!
//! The pages are those of `punctual bench`, of `punctual trace` and of the gimbal. Each has its own layout and charts; what
//! they print goes through the types here, which are written with `{}` and allocate nothing for it.
//!
//! ```
//! use punctual_html::{Escaped, Grouped, Micros};
//!
//! let (task, jobs, response_ns) = ("<control> & \"co\"", 1_234_567, 81_960);
//! assert_eq!(
//!     format!("<td>{}</td><td>{}</td><td>{} µs</td>", Escaped(task), Grouped(jobs), Micros(response_ns)),
//!     "<td>&lt;control&gt; &amp; &quot;co&quot;</td><td>1\u{202F}234\u{202F}567</td><td>82.0 µs</td>"
//! );
//! ```

use std::fmt::{self, Display, Formatter, Write as _};

/// Text in which nothing is markup, neither between tags nor inside a quoted attribute.
///
/// Names of threads are chosen by whoever runs them, and a trace by whoever sends it. So what HTML has no place for becomes
/// U+FFFD: control characters except for line feeds and tabs, and U+FFFE and U+FFFF. So do the marks that turn the order of
/// the text behind them, by which a name could make the rest of a line read otherwise.
///
/// It does not protect where text is something else: within `<script>` or `<style>`, in an attribute without quotes, as the
/// address of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Escaped<'a>(pub &'a str);

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

/// A count with its digits in groups of three, kept on one line by narrow spaces that do not break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grouped(pub u64);

impl Display for Grouped {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0 < 1_000 {
            return write!(f, "{}", self.0);
        }
        write!(f, "{}\u{202F}{:03}", Grouped(self.0 / 1_000), self.0 % 1_000)
    }
}

/// Nanoseconds as microseconds with one decimal, so that columns can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Micros(pub u64);

impl Display for Micros {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // Rounded before it is split, so that 999.96 µs does not become 999.10 µs.
        let tenths = self.0 / 100 + u64::from(self.0 % 100 >= 50);
        write!(f, "{}.{}", Grouped(tenths / 10), tenths % 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_could_be_markup() {
        let text = Escaped("<b a=\"1\" b='2'>&]]>").to_string();
        assert_eq!(text, "&lt;b a=&quot;1&quot; b=&#39;2&#39;&gt;&amp;]]&gt;");
    }

    #[test]
    fn what_a_page_has_no_place_for_is_replaced() {
        for c in ['\0', '\r', '\u{1b}', '\u{7f}', '\u{85}', '\u{FFFE}', '\u{FFFF}'] {
            assert_eq!(Escaped(&format!("a{c}b")).to_string(), "a\u{FFFD}b", "{c:?}");
        }
        assert_eq!(Escaped("a\n\tb").to_string(), "a\n\tb");
    }

    #[test]
    fn the_order_of_text_cannot_be_turned() {
        for c in ('\u{202A}'..='\u{202E}').chain('\u{2066}'..='\u{2069}') {
            assert_eq!(Escaped(&format!("a{c}b")).to_string(), "a\u{FFFD}b", "{c:?}");
        }
        // Letters that are read from right to left are no marks.
        assert_eq!(Escaped("שלום 1").to_string(), "שלום 1");
    }

    #[test]
    fn counts_are_in_groups_of_three() {
        let texts = [0, 999, 1_000, 70_005, 1_234_567].map(|count| Grouped(count).to_string());
        assert_eq!(texts, ["0", "999", "1\u{202F}000", "70\u{202F}005", "1\u{202F}234\u{202F}567"]);
        assert_eq!(Grouped(u64::MAX).to_string().replace('\u{202F}', ""), u64::MAX.to_string());
    }

    #[test]
    fn times_are_rounded_to_the_next_tenth() {
        assert_eq!([0, 49, 50, 81_960].map(|ns| Micros(ns).to_string()), ["0.0", "0.0", "0.1", "82.0"]);
        assert_eq!(Micros(999_960).to_string(), "1\u{202F}000.0");
        assert_eq!(Micros(u64::MAX).to_string().replace('\u{202F}', ""), "18446744073709551.6");
    }
}
