//! Text that cannot become markup, or a command to a terminal.
//!
//! ```
//! use punctual_report::escape::{Code, Escaped, NoBreak, Printable};
//!
//! assert_eq!(Printable("a\x1b[2Jb\n").to_string(), "a\\u{1b}[2Jb\\n");
//! assert_eq!(Escaped("<b a=\"1\">").to_string(), "&lt;b a=&quot;1&quot;&gt;");
//! assert_eq!(NoBreak("1 812 µs").to_string(), "1\u{202F}812\u{202F}µs");
//! assert_eq!(Code("held by `<log>/7`").to_string(), "held by <code>&lt;log&gt;/7</code>");
//! ```

use std::fmt::{self, Display, Formatter, Write as _};

use crate::text::continues_number;

/// Text without markup, both between tags and inside a quoted attribute.
///
/// Names of threads and traces come from untrusted sources. So characters that are invalid in HTML
/// become U+FFFD: control characters except for line feeds and tabs, and U+FFFE and U+FFFF. So do
/// marks that change the direction of the following text, which could make the rest of a line read
/// differently.
///
/// It gives no protection in other contexts: within `<script>` or `<style>`, in an unquoted
/// attribute, or as the address of a link.
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
                // Invalid in HTML, even as a character reference; and marks that change the text
                // direction.
                c if c.is_control() && !matches!(c, '\n' | '\t') => {
                    f.write_char(char::REPLACEMENT_CHARACTER)?;
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

/// Returns `true` if a character affects the text around it, on a terminal or in a line-based file:
/// control characters, line and paragraph separators, and marks that change the text direction.
fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Text on one line without side effects, for terminals and line-based files. Control characters,
/// line separators and marks that change the text direction are written as Rust escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Printable<'a>(pub &'a str);

impl Printable<'_> {
    /// Returns `true` if the text is written as it is.
    #[must_use]
    pub fn is_unchanged(self) -> bool {
        !self.0.contains(is_active)
    }
}

impl Display for Printable<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.is_unchanged() {
            return f.write_str(self.0);
        }
        self.0.chars().try_for_each(|c| match is_active(c) {
            true => write!(f, "{}", c.escape_default()),
            false => f.write_char(c),
        })
    }
}

/// [`Escaped`], and kept on one line: its spaces are narrow non-breaking ones. For numbers with
/// their units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoBreak<'a>(pub &'a str);

impl Display for NoBreak<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, part) in self.0.split(' ').enumerate() {
            if index > 0 {
                f.write_char('\u{202F}')?;
            }
            Escaped(part).fmt(f)?;
        }
        Ok(())
    }
}

/// [`Escaped`], without line breaks within a number and between it and its unit.
struct Sentence<'a>(&'a str);

impl Display for Sentence<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some((before, after)) = rest.split_once(' ') {
            let space = if continues_number(before, after) { '\u{202F}' } else { ' ' };
            write!(f, "{}{space}", Escaped(before))?;
            rest = after;
        }
        Escaped(rest).fmt(f)
    }
}

/// [`Escaped`], with text between backquotes marked as code, and numbers kept next to their units.
///
/// If a name contains backquotes, other text is marked, but tags still come in pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code<'a>(pub &'a str);

impl Display for Code<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.0.matches('`').count().is_multiple_of(2) {
            return Sentence(self.0).fmt(f);
        }
        for (index, part) in self.0.split('`').enumerate() {
            match index % 2 {
                0 => Sentence(part).fmt(f)?,
                _ => write!(f, "<code>{}</code>", Escaped(part))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_no_markup() {
        let text = Escaped("<b a=\"1\" b='2'>&]]>").to_string();
        assert_eq!(text, "&lt;b a=&quot;1&quot; b=&#39;2&#39;&gt;&amp;]]&gt;");
    }

    #[test]
    fn escapes_markup_characters() {
        for c in ('\0'..'\u{3000}').chain('\u{FE00}'..='\u{10010}').filter(|c| !c.is_alphanumeric()) {
            let text = format!("a{c}`{c}`");
            for html in [Escaped(&text).to_string(), NoBreak(&text).to_string(), Code(&text).to_string()] {
                let html = html.replace("<code>", "").replace("</code>", "");
                assert!(!html.contains(['<', '>', '"', '\'']), "{c:?} in {html}");
                let mut references = html.split('&').skip(1);
                assert!(references.all(|rest| rest.contains(';')), "{c:?} in {html}");
            }
        }
    }

    #[test]
    fn replaces_terminal_control_characters() {
        for c in '\0'..='\u{3000}' {
            let text = Printable(&format!("a{c}b")).to_string();
            assert!(!text.contains(is_active), "{c:?}");
            assert_eq!(text == format!("a{c}b"), !is_active(c), "{c:?}: {text}");
        }
        assert_eq!(Printable("é ‰ 好 `\\`").to_string(), "é ‰ 好 `\\`");
        assert_eq!(Printable("\u{9b}1m\r\n\t\u{202e}").to_string(), "\\u{9b}1m\\r\\n\\t\\u{202e}");
    }

    #[test]
    fn replaces_characters_invalid_in_html() {
        for c in ['\0', '\r', '\u{1b}', '\u{7f}', '\u{85}', '\u{FFFE}', '\u{FFFF}'] {
            assert_eq!(Escaped(&format!("a{c}b")).to_string(), "a\u{FFFD}b", "{c:?}");
        }
        assert_eq!(Escaped("a\n\tb").to_string(), "a\n\tb");
    }

    #[test]
    fn keeps_order_of_text() {
        for c in ('\u{202A}'..='\u{202E}').chain('\u{2066}'..='\u{2069}') {
            assert_eq!(Escaped(&format!("a{c}b")).to_string(), "a\u{FFFD}b", "{c:?}");
        }
        // Letters of right-to-left scripts are not marks.
        assert_eq!(Escaped("שלום 1").to_string(), "שלום 1");
    }

    #[test]
    fn keeps_numbers_next_to_their_units() {
        let text = Code("15 of 19 528 jobs took 1.2 ms, 100 % of `the 3 ms` <2 µs>").to_string();
        let expected = "15 of 19_528 jobs took 1.2_ms, 100_% of <code>the 3 ms</code> &lt;2_µs&gt;";
        assert_eq!(text, expected.replace('_', "\u{202F}"));
    }

    #[test]
    fn pairs_code_tags() {
        assert_eq!(Code("by ``</code>` for 3").to_string(), "by ``&lt;/code&gt;` for 3");
        assert_eq!(Code("by `` `x`").to_string(), "by <code></code> <code>x</code>");
    }
}
