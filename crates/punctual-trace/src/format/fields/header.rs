//! `header_page` and `header_event`: the layout of a page of the ring buffer and of the head of an
//! event.

use super::parse::{self, Line};
use super::{Field, FormatError, FormatProblem};
use crate::format::Order;

/// The kernel allows 128 pages of the system for one of the ring buffer; each may have 64 KiB.
const PAGE_LIMIT: usize = 8 << 20;

/// The layout of a page of the ring buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLayout {
    /// The byte order of numbers.
    pub order: Order,
    /// The offset of the page's time, which takes eight bytes.
    pub timestamp: usize,
    /// The offset of the length in use.
    pub commit: usize,
    /// The size of that length: 4 or 8, like the kernel's `long`.
    pub long: usize,
    /// The offset of the first event.
    pub data: usize,
    /// The size of the page, including the header.
    pub size: usize,
}

impl PageLayout {
    /// Returns the layout that 64-bit kernels have always had, with pages of that size.
    pub const fn usual(size: usize) -> Self {
        Self { order: Order::NATIVE, timestamp: 0, commit: 8, long: 8, data: 16, size }
    }

    /// Parses a `header_page` file.
    pub fn parse(text: &[u8], order: Order) -> Result<Self, FormatError> {
        let mut found: [Option<(Field, usize)>; 3] = [None, None, None];
        for line in parse::lines(text)?.filter(|line| line.text.starts_with("field:")) {
            let field = header_field(&line)?;
            if let Some(at) = ["timestamp", "commit", "data"].iter().position(|&name| name == field.name) {
                found[at] = Some((field, line.offset));
            }
        }
        let missing = |what| FormatError { offset: text.len(), problem: FormatProblem::Missing(what) };
        let [timestamp, commit, data] = found;
        let (timestamp, at) = timestamp.ok_or_else(|| missing("timestamp"))?;
        if timestamp.size != 8 {
            return Err(layout(at, format!("the time of a page has {} bytes", timestamp.size)));
        }
        let (commit, at) = commit.ok_or_else(|| missing("commit"))?;
        if ![4, 8].contains(&commit.size) {
            return Err(layout(at, format!("the length of a page has {} bytes", commit.size)));
        }
        let (data, at) = data.ok_or_else(|| missing("data"))?;
        let header = [&timestamp, &commit].map(|field| usize::from(field.offset) + usize::from(field.size));
        let start = usize::from(data.offset);
        if header.iter().any(|&end| end > start) {
            return Err(layout(at, "the events of a page overlap its header".to_owned()));
        }
        let layout = Self {
            order,
            timestamp: usize::from(timestamp.offset),
            commit: usize::from(commit.offset),
            long: usize::from(commit.size),
            data: start,
            size: start + usize::from(data.size),
        };
        layout.with_size(large_size(text).map_or(layout.size, |size| start + size)).map_err(|mut error| {
            error.offset = at;
            error
        })
    }

    /// Returns the layout for pages of another size, which files state separately.
    pub fn with_size(mut self, size: usize) -> Result<Self, FormatError> {
        if size < self.data + 8 || size > PAGE_LIMIT {
            return Err(layout(0, format!("the pages of the ring buffer have {size} bytes")));
        }
        self.size = size;
        Ok(self)
    }
}

fn layout(offset: usize, what: String) -> FormatError {
    FormatError { offset, problem: FormatProblem::Layout(what) }
}

/// Returns the size of `data`, which exceeds the fields of any event if pages are large.
fn large_size(text: &[u8]) -> Option<usize> {
    let text = str::from_utf8(text).ok()?;
    let line = text.lines().find(|line| line.contains("char data;"))?;
    line.split(';').find_map(|part| part.trim().strip_prefix("size:"))?.parse().ok()
}

fn header_field(line: &Line<'_>) -> Result<Field, FormatError> {
    match parse::field(line) {
        Err(FormatError { problem: FormatProblem::TooLong { .. }, .. })
            if line.text.contains("char data;") =>
        {
            let shortened = line.text.split(';').map(str::trim).filter(|part| !part.starts_with("size:"));
            let text = shortened.collect::<Vec<_>>().join(";") + ";size:0;";
            parse::field(&Line { offset: line.offset, text: &text })
        }
        other => other,
    }
}

/// Checks that a `header_event` file describes the layout that the page decoder assumes.
pub fn check_header_event(text: &[u8]) -> Result<(), FormatError> {
    const EXPECTED: [(&str, &str); 7] = [
        ("type_len", "5 bits"),
        ("time_delta", "27 bits"),
        ("array", "32 bits"),
        ("padding", "type == 29"),
        ("time_extend", "type == 30"),
        ("time_stamp", "type == 31"),
        ("data max type_len", "== 28"),
    ];
    for line in parse::lines(text)? {
        let Some((name, value)) = line.text.split_once(':').or_else(|| {
            let at = line.text.find("==")?;
            Some((&line.text[..at], &line.text[at..]))
        }) else {
            continue;
        };
        if let Some((name, expected)) = EXPECTED.iter().find(|(known, _)| *known == name.trim())
            && *expected != value.trim()
        {
            return Err(layout(
                line.offset,
                format!("`{name}` is `{}` instead of `{expected}`", value.trim()),
            ));
        }
    }
    Ok(())
}
