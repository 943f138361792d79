//! Finds the lines of values in parsed files, for errors that are detected later.

use toml::de::{DeTable, DeValue};

use super::Step;

/// Returns the line of the value at `path`, or of the last existing value on the path.
pub(crate) fn in_toml(text: &str, path: &[Step]) -> Option<usize> {
    let table = DeTable::parse(text).ok()?;
    let mut span = None;
    let mut here: Option<&DeValue<'_>> = None;
    let mut root = Some(table.get_ref());
    for step in path {
        let next = match (step, root.take(), here) {
            (Step::Key(key), Some(table), _) | (Step::Key(key), None, Some(DeValue::Table(table))) => {
                table.get(*key)
            }
            (Step::At(index), None, Some(DeValue::Array(list))) => list.get(*index),
            _ => None,
        };
        let Some(next) = next else { break };
        span = Some(next.span().start);
        here = Some(next.get_ref());
    }
    Some(line_of(text, span?))
}

/// Returns the line in JSON that was parsed without an error.
pub(crate) fn in_json(text: &str, path: &[Step]) -> Option<usize> {
    let mut scanner = Scanner { bytes: text.as_bytes(), at: 0 };
    scanner.space();
    let mut found = scanner.at;
    for step in path {
        let there = match step {
            Step::Key(key) => scanner.enter_object(key),
            Step::At(index) => scanner.enter_list(*index),
        };
        if there.is_none() {
            break;
        }
        found = scanner.at;
    }
    Some(line_of(text, found))
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|&&byte| byte == b'\n').count() + 1
}

/// Scans JSON. Every step advances, so scanning terminates for any input.
struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    fn space(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.space();
        (self.bytes.get(self.at) == Some(&byte)).then(|| self.at += 1)
    }

    /// Advances from the start of an object to the value of `key`.
    fn enter_object(&mut self, key: &str) -> Option<()> {
        self.take(b'{')?;
        loop {
            self.space();
            let from = self.at;
            self.text()?;
            let is_it = self.bytes.get(from + 1..self.at - 1) == Some(key.as_bytes());
            self.take(b':')?;
            self.space();
            if is_it {
                return Some(());
            }
            self.value()?;
            self.take(b',')?;
        }
    }

    /// Advances from the start of a list to an element.
    fn enter_list(&mut self, index: usize) -> Option<()> {
        self.take(b'[')?;
        for _ in 0..index {
            self.value()?;
            self.take(b',')?;
        }
        self.space();
        (self.bytes.get(self.at) != Some(&b']')).then_some(())
    }

    fn text(&mut self) -> Option<()> {
        self.take(b'"')?;
        loop {
            match self.bytes.get(self.at)? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }

    /// Skips a value. Counts brackets, so nesting needs no stack.
    fn value(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            self.space();
            match self.bytes.get(self.at)? {
                b'"' => self.text()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                    continue;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                b',' | b':' => return None,
                _ => {
                    let is_end =
                        |byte: &u8| matches!(byte, b',' | b':' | b'}' | b']') || byte.is_ascii_whitespace();
                    let rest = &self.bytes[self.at..];
                    self.at += rest.iter().position(is_end).unwrap_or(rest.len());
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Step::{At, Key};

    #[test]
    fn finds_lines_of_toml() {
        let text = "schema = \"x\"\n\n[[task]]\nname = \"a\"\n[[task]]\nname = \"b\"\nsections = [\n  { resource = \"r\" },\n]\n";
        assert_eq!(in_toml(text, &[Key("task"), At(1), Key("name")]), Some(6));
        assert_eq!(in_toml(text, &[Key("task"), At(1), Key("sections"), At(0), Key("resource")]), Some(8));
        assert_eq!(in_toml(text, &[Key("task"), At(1), Key("level")]), Some(5));
        assert_eq!(in_toml(text, &[Key("schema")]), Some(1));
    }

    #[test]
    fn finds_lines_of_json() {
        let text = "{ \"a\\\"\": [1, {\"task\": 3}],\n \"task\": [\n {\"name\": \"x\", \"level\": -1.5e3},\n {\"name\":\n \"y\"}]}";
        assert_eq!(in_json(text, &[Key("task"), At(0), Key("level")]), Some(3));
        assert_eq!(in_json(text, &[Key("task"), At(1), Key("name")]), Some(5));
        assert_eq!(in_json(text, &[Key("task"), At(1), Key("none")]), Some(4));
        assert_eq!(in_json(text, &[Key("task"), At(7)]), Some(2));
        for end in 0..text.len() {
            if text.is_char_boundary(end) {
                let _ = in_json(&text[..end], &[Key("task"), At(1), Key("name")]);
            }
        }
    }
}
