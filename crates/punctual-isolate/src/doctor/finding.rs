//! The findings of checks.

use std::borrow::Cow;

use punctual_report::escape::Printable;
use punctual_report::format::format_nanos;
use serde::{Serialize, Serializer};

use crate::change::Change;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Information only.
    Note,
    /// Costs some microseconds, or occurs rarely.
    Low,
    /// Costs tens to hundreds of microseconds.
    Medium,
    /// A thread misses its deadline sooner or later, or does not get its priority at all.
    High,
}

impl Severity {
    /// Returns the severity as a word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A condition that may make a real-time thread miss its deadline.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// The check that found it.
    pub check: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The condition.
    pub found: String,
    /// Its consequence.
    pub why: String,
    /// Its cost, if known.
    pub cost: Option<Cost>,
    /// The remedies.
    pub fixes: Vec<Fix>,
}

/// The time cost of a condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// The time in ns.
    pub ns: u64,
    /// The unit of occurrence: `for a system call`.
    pub of: String,
    /// The origin of the figure.
    pub source: Source,
}

/// The origin of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Measured on this machine.
    Measured,
    /// Stated by the kernel or a driver.
    Stated,
    /// Typical order of magnitude on other machines.
    Typical,
}

impl Cost {
    /// Creates a figure that was measured on this machine.
    pub(super) fn measured(ns: u64, of: impl Into<String>) -> Self {
        Self { ns, of: of.into(), source: Source::Measured }
    }

    /// Creates a figure that the kernel states.
    pub(super) fn stated(ns: u64, of: impl Into<String>) -> Self {
        Self { ns, of: of.into(), source: Source::Stated }
    }

    /// Creates a typical order of magnitude.
    pub(super) fn typical(ns: u64, of: impl Into<String>) -> Self {
        Self { ns, of: of.into(), source: Source::Typical }
    }

    /// Formats the cost on one line.
    #[must_use]
    pub fn line(&self) -> String {
        let time = format_nanos(self.ns as f64);
        match self.source {
            Source::Measured => format!("measured here: {time} {}", self.of),
            Source::Stated => format!("{time} {}, as stated by the kernel", self.of),
            Source::Typical => format!("typically {time} {}; not measured here", self.of),
        }
    }
}

/// A remedy for a finding.
#[derive(Debug, Clone, Serialize)]
pub struct Fix {
    /// A command, or an edit to make.
    pub command: String,
    /// `command` is one for a shell of this machine.
    #[serde(skip)]
    pub is_command: bool,
    /// The duration of its effect.
    pub lasts: Lasts,
    /// The changes made by `--fix`, if it can make and undo them.
    #[serde(rename = "automatic", serialize_with = "has_any")]
    pub changes: Vec<Change>,
}

/// Serializes whether there are changes.
fn has_any<S: Serializer>(changes: &[Change], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(!changes.is_empty())
}

/// The duration of a remedy's effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lasts {
    /// Immediate, until the next reboot.
    UntilReboot,
    /// Immediate and permanent.
    Always,
    /// Permanent from the next reboot on.
    FromReboot,
    /// Only for processes started this way.
    ThisStart,
}

impl Lasts {
    /// Describes the duration in a phrase.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UntilReboot => "lost at the next reboot",
            Self::Always => "survives a reboot",
            Self::FromReboot => "takes effect at the next reboot, permanently",
            Self::ThisStart => "required at each start",
        }
    }
}

/// A property that could not be determined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unknown {
    /// The check that needed it.
    pub check: &'static str,
    /// The unknown property.
    pub what: String,
    /// The reason, and how to find out.
    pub why: String,
}

impl Finding {
    pub(super) fn new(severity: Severity, found: impl Into<String>) -> Self {
        Self { check: "", severity, found: found.into(), why: String::new(), cost: None, fixes: Vec::new() }
    }

    pub(super) fn why(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }

    pub(super) fn costs(mut self, cost: impl Into<Option<Cost>>) -> Self {
        self.cost = cost.into();
        self
    }

    /// Adds a remedy that is a command.
    pub(super) fn fix(mut self, lasts: Lasts, command: impl Into<String>) -> Self {
        self.fixes.push(Fix { command: command.into(), is_command: true, lasts, changes: Vec::new() });
        self
    }

    /// Adds a remedy in words.
    pub(super) fn advise(mut self, lasts: Lasts, remedy: impl Into<String>) -> Self {
        self.fixes.push(Fix { command: remedy.into(), is_command: false, lasts, changes: Vec::new() });
        self
    }

    /// Adds a remedy that consists of settings, with a command that does the same.
    pub(super) fn set(mut self, command: impl Into<String>, changes: Vec<Change>) -> Self {
        self.fixes.push(Fix {
            command: command.into(),
            is_command: true,
            lasts: Lasts::UntilReboot,
            changes,
        });
        self
    }

    /// Adds a remedy that writes one file.
    pub(super) fn write(self, path: &str, value: &str) -> Self {
        self.set(format!("echo {value} > {}", quoted(path)), vec![Change::file(path, value)])
    }

    /// Assigns the finding to a check, and removes terminal control characters.
    pub(super) fn of(mut self, check: &'static str) -> Self {
        self.check = check;
        for text in [&mut self.found, &mut self.why] {
            *text = clean(text);
        }
        if let Some(cost) = &mut self.cost {
            cost.of = clean(&cost.of);
        }
        for fix in &mut self.fixes {
            fix.command = clean(&fix.command);
        }
        self
    }
}

/// Quotes a word for a shell: names of devices and groups may contain special characters.
pub(super) fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_-.,:+=@%".contains(c);
    match word.chars().all(is_plain) {
        true => Cow::Borrowed(word),
        false => Cow::Owned(format!("'{}'", word.replace('\'', "'\\''"))),
    }
}

/// Escapes control characters. Names of threads, interrupts and devices are arbitrary.
pub(crate) fn clean(text: &str) -> String {
    Printable(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_shell_metacharacters() {
        assert_eq!(quoted("/sys/a_b-0.c"), "/sys/a_b-0.c");
        assert_eq!(quoted("/sys/$(reboot)"), "'/sys/$(reboot)'");
        assert_eq!(quoted("a'b"), "'a'\\''b'");
    }
}
