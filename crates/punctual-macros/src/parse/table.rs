//! Rows of the tables of keys: parsing, errors, suggestions and the tables in `app.md` are derived
//! from these. The tables are next to the code that reads the values.

use std::borrow::Cow;

use self::Value::{Choice, Flag, Int, Other};

/// A key of an attribute.
pub(super) struct Key {
    /// The key with a typical value, such as `cpu = N`.
    pub(super) usage: &'static str,
    pub(super) value: Value,
    /// Another key without which it has no effect, and the error about that.
    pub(super) requires: Option<(&'static str, &'static str)>,
    /// The default, and the meaning, in `app.md`.
    #[cfg_attr(not(test), expect(dead_code, reason = "compared with `app.md` by a test"))]
    documentation: [&'static str; 2],
}

/// Type of a key's value.
pub(super) enum Value {
    /// A Boolean; the key alone means `true`.
    Flag,
    /// An integer from the first to the second number.
    Int(u16, u16),
    /// One of these names, the first by default; and what it determines, for errors.
    Choice(&'static [&'static str], &'static str),
    /// Anything else, with its form for errors.
    Other(&'static str),
}

impl Key {
    pub(super) const fn new(
        usage: &'static str,
        value: Value,
        default: &'static str,
        meaning: &'static str,
    ) -> Self {
        Self { usage, value, requires: None, documentation: [default, meaning] }
    }

    pub(super) const fn requires(mut self, other: &'static str, error: &'static str) -> Self {
        self.requires = Some((other, error));
        self
    }

    /// Returns the key itself.
    pub(super) fn name(&self) -> &'static str {
        self.usage.split(' ').next().unwrap_or_default()
    }

    /// Returns the form of its value.
    pub(super) fn form(&self) -> Cow<'static, str> {
        match self.value {
            Flag => "<bool>".into(),
            Int(low, high) => format!("<integer from {low} to {high}>").into(),
            Choice(names, _) => format!("<{}>", alternatives(names.iter().copied())).into(),
            Other(form) => form.into(),
        }
    }
}

/// Joins names by commas and `or`.
pub(super) fn alternatives(names: impl Iterator<Item = impl AsRef<str>>) -> String {
    let mut names: Vec<_> = names.map(|name| name.as_ref().to_owned()).collect();
    match names.pop() {
        Some(last) if names.is_empty() => last,
        Some(last) => format!("{} or {last}", names.join(", ")),
        None => String::new(),
    }
}

/// Form of a duration.
pub(super) const DURATION: Value = Other("<duration>");

#[cfg(test)]
mod tests {
    use crate::parse::{args, task};

    #[test]
    fn documentation_tables_are_current() {
        let mut page = include_str!("../app.md").to_owned();
        for (heading, keys) in [("argument", args::KEYS), ("key", task::KEYS)] {
            let rows = keys.iter().map(|key| {
                let [default, meaning] = key.documentation;
                format!("| `{}` | {default} | {meaning} |\n", key.usage)
            });
            let head = format!("| {heading} | default | meaning |\n|---|---|---|\n");
            let (before, rest) = page.split_once(&head).expect("the page has the table");
            let old = rest.split_inclusive('\n').take_while(|line| line.starts_with('|'));
            let after = &rest[old.map(str::len).sum()..];
            page = format!("{before}{head}{}{after}", rows.collect::<String>());
        }
        crate::assert_current("src/app.md", &page);
    }

    #[test]
    fn required_keys_exist() {
        for key in task::KEYS {
            let Some((other, _)) = key.requires else { continue };
            assert!(task::KEYS.iter().any(|key| key.name() == other), "{other}");
        }
    }
}
