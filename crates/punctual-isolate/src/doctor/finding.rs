//! What a check has found.

use std::borrow::Cow;

use punctual_report::escape::Printable;
use punctual_report::format::format_nanos;

use crate::change::Change;

/// How much something matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Note,
    /// Costs some microseconds, or something now and then.
    Low,
    /// Costs tens to hundreds of microseconds.
    Medium,
    /// A thread misses its deadline sooner or later, or does not get its priority at all.
    High,
}

impl Severity {
    /// In a word.
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

/// Something that stands between a real-time thread and its deadline.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The check that found it.
    pub check: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What is the case.
    pub found: String,
    /// Why that matters.
    pub why: String,
    /// How much time it takes, if something is known of that.
    pub cost: Option<Cost>,
    /// What to do.
    pub fixes: Vec<Fix>,
}

/// How much time something takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// In ns.
    pub ns: u64,
    /// Of what: `for a system call`.
    pub of: String,
    /// Where the figure is from.
    pub source: Source,
}

/// Where a figure is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// It was measured here.
    Measured,
    /// The kernel or a driver states it.
    Stated,
    /// It is of this order on other machines.
    Typical,
}

impl Cost {
    /// A figure that was measured here.
    pub(super) fn measured(ns: u64, of: impl Into<String>) -> Self {
        Self { ns, of: of.into(), source: Source::Measured }
    }

    /// A figure that the kernel states.
    pub(super) fn stated(ns: u64, of: impl Into<String>) -> Self {
        Self { ns, of: of.into(), source: Source::Stated }
    }

    /// The order of magnitude elsewhere.
    pub(super) fn typical(ns: u64, of: impl Into<String>) -> Self {
        Self { ns, of: of.into(), source: Source::Typical }
    }

    /// In a line.
    #[must_use]
    pub fn line(&self) -> String {
        let time = format_nanos(self.ns as f64);
        match self.source {
            Source::Measured => format!("measured here: {time} {}", self.of),
            Source::Stated => format!("{time} {}, as the kernel states", self.of),
            Source::Typical => format!("of the order of {time} {}; not measured here", self.of),
        }
    }
}

/// What to do about a finding.
#[derive(Debug, Clone)]
pub struct Fix {
    /// A command, or what to edit.
    pub command: String,
    /// For how long that helps.
    pub lasts: Lasts,
    /// What `--fix` writes, if it can do the same and undo it.
    pub changes: Vec<Change>,
}

/// How long a remedy helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasts {
    /// At once, until the machine is booted again.
    UntilReboot,
    /// At once, and after a reboot as well.
    Always,
    /// After the next reboot, and from then on.
    FromReboot,
    /// For what is started that way.
    ThisStart,
}

impl Lasts {
    /// In a phrase.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UntilReboot => "lost at the next reboot",
            Self::Always => "survives a reboot",
            Self::FromReboot => "takes effect with the next reboot, and stays",
            Self::ThisStart => "has to be given at each start",
        }
    }
}

/// What could not be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The check that needed it.
    pub check: &'static str,
    /// What is not known.
    pub what: String,
    /// Why, and how it can be found out.
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

    pub(super) fn fix(mut self, lasts: Lasts, command: impl Into<String>) -> Self {
        self.fixes.push(Fix { command: command.into(), lasts, changes: Vec::new() });
        self
    }

    /// A remedy that consists of settings, by a command that does the same.
    pub(super) fn set(mut self, command: impl Into<String>, changes: Vec<Change>) -> Self {
        self.fixes.push(Fix { command: command.into(), lasts: Lasts::UntilReboot, changes });
        self
    }

    /// A remedy that is the setting of one file.
    pub(super) fn write(self, path: &str, value: &str) -> Self {
        self.set(format!("echo {value} > {}", quoted(path)), vec![Change::file(path, value)])
    }

    /// The finding of a check, with nothing in it that does anything to a terminal.
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

/// A word of a shell's command, whatever is in it: names of devices and groups may mean something to a shell.
pub(super) fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_-.,:+=@%".contains(c);
    match word.chars().all(is_plain) {
        true => Cow::Borrowed(word),
        false => Cow::Owned(format!("'{}'", word.replace('\'', "'\\''"))),
    }
}

/// Text that does nothing but be read. Threads, interrupts and devices are called what somebody likes.
pub(crate) fn clean(text: &str) -> String {
    Printable(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_what_means_something_to_a_shell() {
        assert_eq!(quoted("/sys/a_b-0.c"), "/sys/a_b-0.c");
        assert_eq!(quoted("/sys/$(reboot)"), "'/sys/$(reboot)'");
        assert_eq!(quoted("a'b"), "'a'\\''b'");
    }
}
