//! JSON for the files that an app writes for other programs.

use std::fmt::{self, Write as _};

/// Maximum length of a value on one line, in characters.
const LINE: usize = 110;

/// A JSON value. Numbers are integers: times are in ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Json {
    Null,
    Number(u64),
    Bool(bool),
    Text(String),
    List(Vec<Json>),
    /// Fields in output order.
    Object(Vec<(&'static str, Json)>),
}

impl From<u64> for Json {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Json {
    fn from(is: bool) -> Self {
        Self::Bool(is)
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl FromIterator<Json> for Json {
    fn from_iter<I: IntoIterator<Item = Json>>(items: I) -> Self {
        Self::List(items.into_iter().collect())
    }
}

/// On one line if short, otherwise one item per line, so that files can be read and compared.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.indented(0))
    }
}

impl Json {
    fn indented(&self, depth: usize) -> String {
        let line = self.line();
        // Objects within an object are on separate lines.
        if 2 * depth + line.chars().count() <= LINE && !self.is_nested() {
            return line;
        }
        let (open, close, items): (_, _, Vec<String>) = match self {
            Self::List(items) => ('[', ']', items.iter().map(|item| item.indented(depth + 1)).collect()),
            Self::Object(fields) => {
                let field =
                    |(name, value): &(&str, Json)| format!("\"{name}\": {}", value.indented(depth + 1));
                ('{', '}', fields.iter().map(field).collect())
            }
            _ => return line,
        };
        let indent = "  ".repeat(depth);
        format!("{open}\n  {indent}{}\n{indent}{close}", items.join(&format!(",\n  {indent}")))
    }

    /// Returns whether it contains an object at least two levels down.
    fn is_nested(&self) -> bool {
        let holds = |value: &Json| match value {
            Self::List(items) => items.iter().any(|item| matches!(item, Self::Object(_))),
            _ => false,
        };
        match self {
            Self::Object(fields) => fields.iter().any(|(_, value)| holds(value)),
            Self::List(items) => items.iter().any(Self::is_nested),
            _ => false,
        }
    }

    fn line(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(is) => is.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => quoted(text),
            Self::List(items) => {
                format!("[{}]", items.iter().map(Self::line).collect::<Vec<_>>().join(", "))
            }
            Self::Object(fields) if fields.is_empty() => "{}".to_owned(),
            Self::Object(fields) => {
                let field = |(name, value): &(&str, Json)| format!("\"{name}\": {}", value.line());
                format!("{{ {} }}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => write!(quoted, "\\u{:04x}", u32::from(c)).expect("a string can be written to"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        assert_eq!(Json::from("a \"b\" \\ \n ü").to_string(), r#""a \"b\" \\ \u000a ü""#);
    }

    #[test]
    fn short_values_are_on_one_line_and_long_ones_are_not() {
        let short = Json::Object(vec![("a", 1.into()), ("b", Json::Null), ("c", Json::List(Vec::new()))]);
        assert_eq!(short.to_string(), r#"{ "a": 1, "b": null, "c": [] }"#);
        let long = Json::Object(vec![("a", "x".repeat(LINE).as_str().into()), ("b", short)]);
        let expected = format!(
            "{{\n  \"a\": \"{}\",\n  \"b\": {{ \"a\": 1, \"b\": null, \"c\": [] }}\n}}",
            "x".repeat(LINE)
        );
        assert_eq!(long.to_string(), expected);
    }
}
