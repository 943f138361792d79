//! One small change to a source that a test should detect.

use std::ops::Range;

/// The syntactic position of a mutation, which decides how it can be switched on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Expression,
    Statement,
}

/// A replacement of one piece of a source file.
#[derive(Clone, Debug)]
pub(crate) struct Mutation {
    pub(crate) package: &'static str,
    /// Relative to the package.
    pub(crate) file: String,
    /// The function with its type, as in `Word::level`.
    pub(crate) function: String,
    pub(crate) line: usize,
    /// The replaced bytes.
    pub(crate) range: Range<usize>,
    pub(crate) replacement: String,
    pub(crate) form: Form,
    /// Whether the compiler may evaluate it, so that it cannot be switched at run time.
    pub(crate) constant: bool,
    /// The surrounding lines, trimmed and joined, without and with the mutation.
    pub(crate) original: String,
    pub(crate) mutated: String,
    /// Distinguishes mutations of the same text in the same function, in their order.
    pub(crate) ordinal: usize,
}

impl Mutation {
    /// Returns the source with the mutation applied.
    pub(crate) fn apply(&self, text: &str) -> String {
        [&text[..self.range.start], self.replacement.as_str(), &text[self.range.end..]].concat()
    }

    /// Returns a name of the mutation that is stable while the lines around it do not change.
    pub(crate) fn key(&self) -> String {
        let Self { package, file, function, original, mutated, ordinal, .. } = self;
        format!("{package}/{file} {function}: `{original}` -> `{mutated}` #{ordinal}")
    }

    /// Returns three lines: the place, and the lines around the mutation without and with it.
    pub(super) fn description(&self) -> String {
        let Self { package, file, line, function, original, mutated, .. } = self;
        format!("crates/{package}/{file}:{line} {function}\n    {original}\n    {mutated}")
    }
}

/// Returns the lines that `range` touches, with `replacement` in its place if there is one, and
/// with single spaces.
pub(crate) fn lines(text: &str, range: &Range<usize>, replacement: Option<&str>) -> String {
    let start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[range.end..].find('\n').map_or(text.len(), |at| range.end + at);
    let piece = replacement.unwrap_or(&text[range.clone()]);
    let whole = [&text[start..range.start], piece, &text[range.end..end]].concat();
    whole.split_whitespace().collect::<Vec<_>>().join(" ")
}
