//! Parses the text of a `format` file.

use super::{EventFormat, Field, FormatError, FormatProblem, Shape};

/// The kernel stores offsets and lengths within a record in 16 bits.
const RECORD_LIMIT: u64 = u16::MAX as u64;
/// The kernel's macros allow far fewer.
const FIELD_LIMIT: usize = 256;

/// A line and its offset.
pub(super) struct Line<'a> {
    pub(super) offset: usize,
    pub(super) text: &'a str,
}

impl Line<'_> {
    pub(super) fn error(&self, problem: FormatProblem) -> FormatError {
        FormatError { offset: self.offset, problem }
    }
}

pub(super) fn lines(text: &[u8]) -> Result<impl Iterator<Item = Line<'_>>, FormatError> {
    let text = str::from_utf8(text)
        .map_err(|error| FormatError { offset: error.valid_up_to(), problem: FormatProblem::NotText })?;
    let mut offset = 0;
    Ok(text.split_inclusive('\n').map(move |line| {
        let start = offset;
        offset += line.len();
        Line { offset: start, text: line.trim() }
    }))
}

pub(super) fn event(system: &str, text: &[u8]) -> Result<EventFormat, FormatError> {
    let (mut name, mut id, mut print) = (None, None, String::new());
    let mut fields = Vec::new();
    for line in lines(text)? {
        if let Some(rest) = line.text.strip_prefix("name:") {
            name = Some(rest.trim().to_owned());
        } else if let Some(rest) = line.text.strip_prefix("ID:") {
            id = Some(rest.trim().parse().map_err(|_| line.error(FormatProblem::Number("ID:")))?);
        } else if line.text.starts_with("field:") {
            if fields.len() == FIELD_LIMIT {
                return Err(line.error(FormatProblem::TooManyFields(FIELD_LIMIT)));
            }
            fields.push(field(&line)?);
        } else if let Some(rest) = line.text.strip_prefix("print fmt:") {
            rest.trim().clone_into(&mut print);
        }
    }
    let missing = |what| FormatError { offset: text.len(), problem: FormatProblem::Missing(what) };
    Ok(EventFormat {
        system: system.to_owned(),
        name: name.ok_or_else(|| missing("name:"))?,
        id: id.ok_or_else(|| missing("ID:"))?,
        fields,
        print,
    })
}

pub(super) fn field(line: &Line<'_>) -> Result<Field, FormatError> {
    let bad = || line.error(FormatProblem::Field);
    let mut parts = line.text.split(';').map(str::trim);
    let declaration = parts.next().and_then(|part| part.strip_prefix("field:")).ok_or_else(bad)?;
    let (mut offset, mut size, mut signed) = (None, None, false);
    for part in parts {
        if let Some(number) = part.strip_prefix("offset:") {
            offset = Some(number.parse::<u64>().map_err(|_| line.error(FormatProblem::Number("offset:")))?);
        } else if let Some(number) = part.strip_prefix("size:") {
            size = Some(number.parse::<u64>().map_err(|_| line.error(FormatProblem::Number("size:")))?);
        } else if let Some(number) = part.strip_prefix("signed:") {
            signed = number == "1";
        }
    }
    let (offset, size) = (offset.ok_or_else(bad)?, size.ok_or_else(bad)?);
    let end = offset.saturating_add(size);
    if end > RECORD_LIMIT {
        return Err(line.error(FormatProblem::TooLong { end, limit: RECORD_LIMIT }));
    }
    let (name, shape) = name_and_shape(declaration).ok_or_else(bad)?;
    Ok(Field { name: name.to_owned(), offset: offset as u16, size: size as u16, signed, shape })
}

/// Parses a C declaration: `unsigned long args[6]`, `__data_loc char[] comm`, `void * timer`.
fn name_and_shape(declaration: &str) -> Option<(&str, Shape)> {
    let declaration = declaration.trim();
    let (head, shape) = match declaration.strip_suffix(']') {
        Some(array) => {
            let (head, count) = array.rsplit_once('[')?;
            // A size that is an expression or an enumerator of the kernel stays unknown; nothing
            // here needs it.
            (head.trim_end(), Shape::Array(count.trim().parse().unwrap_or(0)))
        }
        None => (declaration, Shape::Plain),
    };
    let shape = match declaration.split_whitespace().next()? {
        "__data_loc" => Shape::Located,
        "__rel_loc" => Shape::LocatedAfter,
        _ => shape,
    };
    let start = head.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).map_or(0, |at| at + 1);
    let name = head.get(start..)?;
    (!name.is_empty() && start > 0).then_some((name, shape))
}
