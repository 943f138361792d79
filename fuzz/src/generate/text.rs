//! Source text with its indentation.

use std::fmt;

/// Lines of source.
#[derive(Debug, Default)]
pub(super) struct Text {
    text: String,
    depth: usize,
}

impl Text {
    /// A line.
    pub(super) fn line(&mut self, line: impl fmt::Display) {
        let line = line.to_string();
        let indent = if line.is_empty() { 0 } else { self.depth * 4 };
        self.text.push_str(&" ".repeat(indent));
        self.text.push_str(&line);
        self.text.push('\n');
    }

    /// A line, further ones within it, and the line that ends it.
    pub(super) fn block(
        &mut self,
        begin: impl fmt::Display,
        end: impl fmt::Display,
        within: impl FnOnce(&mut Self),
    ) {
        self.line(begin);
        self.depth += 1;
        within(self);
        self.depth -= 1;
        self.line(end);
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}
