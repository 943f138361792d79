//! The checks of every row of setpoints, regardless of its source.

use super::{Problem, SetpointError};
use crate::axes::Axes;
use crate::plant::AngleRange;
use csv::{ByteRecord, ReaderBuilder, Terminator};

/// The columns of a row with a time, as they are named in the header of a file.
pub(super) const TIMED: [&str; 3] = ["time_s", "pan_rad", "tilt_rad"];

/// [`TIMED`] as one line.
pub(super) const HEADER: &str = "time_s,pan_rad,tilt_rad";

/// The maximum number of characters of a bad value that an error quotes.
const QUOTED_CHARS: usize = 40;

/// A row that has passed all checks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Row {
    pub(super) time_s: f64,
    pub(super) angles_rad: Axes<f64>,
}

/// Checks rows one after the other.
#[derive(Debug, Clone)]
pub(super) struct RowCheck {
    source: String,
    ranges: Axes<AngleRange>,
    last_s: f64,
}

impl RowCheck {
    pub(super) fn new(source: &str, ranges: Axes<AngleRange>) -> Self {
        Self { source: source.to_owned(), ranges, last_s: 0.0 }
    }

    /// Returns an error in this source; `column` counts from zero.
    pub(super) fn error(
        &self,
        line: Option<u64>,
        column: Option<(usize, &'static str)>,
        problem: Problem,
    ) -> SetpointError {
        let column = column.map(|(index, name)| (index + 1, name));
        SetpointError { source: self.source.clone(), line, column, problem }
    }

    /// Checks the fields of a row with a time.
    pub(super) fn timed<'a>(
        &mut self,
        line: u64,
        fields: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Row, SetpointError> {
        let [time_s, pan_rad, tilt_rad] = self.numbers(line, &TIMED, HEADER, fields)?;
        let bad_time = |problem| Err(self.error(Some(line), Some((0, TIMED[0])), problem));
        if time_s < 0.0 {
            return bad_time(Problem::NegativeTime { found_s: time_s });
        }
        if time_s < self.last_s {
            return bad_time(Problem::TimeBackwards { found_s: time_s, last_s: self.last_s });
        }
        let angles_rad = self.in_range(line, 1, Axes::new(pan_rad, tilt_rad))?;
        self.last_s = time_s;
        Ok(Row { time_s, angles_rad })
    }

    /// Checks the fields of a row with angles only.
    pub(super) fn untimed<'a>(
        &self,
        line: u64,
        fields: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Axes<f64>, SetpointError> {
        let [pan_rad, tilt_rad] = self.numbers(line, &[TIMED[1], TIMED[2]], "pan_rad,tilt_rad", fields)?;
        self.in_range(line, 0, Axes::new(pan_rad, tilt_rad))
    }

    fn numbers<'a, const N: usize>(
        &self,
        line: u64,
        names: &[&'static str; N],
        columns: &'static str,
        fields: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<[f64; N], SetpointError> {
        let mut fields = fields.into_iter();
        let mut values = [0.0; N];
        for (index, (value, name)) in values.iter_mut().zip(names).enumerate() {
            let number = fields.next().ok_or(Problem::Missing).and_then(number);
            *value = number.map_err(|problem| self.error(Some(line), Some((index, name)), problem))?;
        }
        match fields.next() {
            None => Ok(values),
            Some(field) => {
                let problem = Problem::Extra { found: quoted(field), columns };
                Err(self.error(Some(line), Some((N, "")), problem))
            }
        }
    }

    /// Checks angles, of which pan is in column `first`, against the hard stops.
    fn in_range(&self, line: u64, first: usize, angles: Axes<f64>) -> Result<Axes<f64>, SetpointError> {
        let pan = (first, TIMED[1], angles.pan, self.ranges.pan);
        let tilt = (first + 1, TIMED[2], angles.tilt, self.ranges.tilt);
        for (column, name, found_rad, range) in [pan, tilt] {
            if !range.contains(found_rad) {
                let AngleRange { min_rad, max_rad } = range;
                let problem = Problem::OutOfRange { found_rad, min_rad, max_rad };
                return Err(self.error(Some(line), Some((column, name)), problem));
            }
        }
        Ok(angles)
    }
}

/// Returns the text of a field for an error message; truncated if long, and with bytes that are not
/// text replaced.
pub(super) fn quoted(field: &[u8]) -> String {
    let text = String::from_utf8_lossy(field);
    match text.char_indices().nth(QUOTED_CHARS) {
        None => text.into_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Splits a line into its fields, by the rules of CSV; returns `None` if it is blank or a comment.
///
/// Lines are split beforehand, because a number never spans two lines and an error should name the
/// line as an editor counts it.
pub(super) fn fields(line: &[u8]) -> Option<ByteRecord> {
    let line = line.trim_ascii();
    if line.is_empty() || line.starts_with(b"#") {
        return None;
    }
    let mut record = ByteRecord::new();
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .buffer_capacity(line.len())
        // A stray carriage return is part of a field, and thus an error, not the silent end of the
        // line.
        .terminator(Terminator::Any(b'\n'))
        .from_reader(line);
    // Reading from memory cannot fail; a missing record would appear as missing columns.
    let _ = reader.read_byte_record(&mut record);
    Some(record)
}

fn number(field: &[u8]) -> Result<f64, Problem> {
    let trimmed = field.trim_ascii();
    if trimmed.is_empty() {
        return Err(Problem::Missing);
    }
    match std::str::from_utf8(trimmed).ok().and_then(|text| text.parse::<f64>().ok()) {
        None => Err(Problem::NotANumber { found: quoted(trimmed) }),
        Some(value) if !value.is_finite() => Err(Problem::NotFinite { found: quoted(trimmed) }),
        Some(value) => Ok(value),
    }
}
