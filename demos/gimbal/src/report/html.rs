//! Text for HTML: escaped, and with numbers in the form people read.

use std::fmt::{self, Display, Formatter, Write as _};

/// Text in which nothing is markup, neither between tags nor inside a quoted attribute.
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
                // Not allowed in HTML, not even as a character reference.
                c if c.is_control() && !matches!(c, '\n' | '\t') => {
                    f.write_char(char::REPLACEMENT_CHARACTER)?
                }
                c => f.write_char(c)?,
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

/// Nanoseconds as microseconds with one decimal.
pub(super) struct Micros(pub(super) u64);

impl Display for Micros {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // Rounded before it is split, so that 999.96 µs does not become 999.10 µs.
        let tenths = self.0 / 100 + u64::from(self.0 % 100 >= 50);
        write!(f, "{}.{}", Grouped(tenths / 10), tenths % 10)
    }
}

/// Microradians, with decimals only where they say something.
pub(super) struct Microradians(pub(super) f64);

impl Display for Microradians {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let decimals = match self.0.abs() {
            0.0 => 0,
            ..1.0 => 3,
            ..10.0 => 2,
            ..1000.0 => 1,
            _ => 0,
        };
        write!(f, "{:.decimals$}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_could_be_markup() {
        let text = Escaped("<b a=\"1\" b='2'>&\u{0}").to_string();
        assert_eq!(text, "&lt;b a=&quot;1&quot; b=&#39;2&#39;&gt;&amp;\u{FFFD}");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(Grouped(0).to_string(), "0");
        assert_eq!(Grouped(1_234_567).to_string(), "1\u{202F}234\u{202F}567");
        assert_eq!(Micros(999_960).to_string(), "1\u{202F}000.0");
        assert_eq!(Micros(49).to_string(), "0.0");
        assert_eq!(Micros(u64::MAX).to_string().split('.').count(), 2);
        assert_eq!(Microradians(0.0).to_string(), "0");
        assert_eq!(Microradians(766.99).to_string(), "767.0");
    }
}
