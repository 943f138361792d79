//! Setpoints as lines of text while the gimbal is running, usually from the standard input.
//!
//! A line is `pan_rad,tilt_rad`, which takes effect immediately, or `time_s,pan_rad,tilt_rad`,
//! which takes effect at that time of the run (immediately, if the time has passed). Blank lines,
//! comments (`#`) and the header of a setpoint file are skipped, so that such a file can be piped
//! in.

use super::row::{RowCheck, TIMED, fields};
use super::{Problem, SetpointError};
use crate::axes::Axes;
use crate::plant::AngleRange;

/// A setpoint from a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LineSetpoint {
    /// Time since the start of the run at which it takes effect, in seconds; `None` for
    /// immediately.
    pub time_s: Option<f64>,
    /// The setpoint angles, in radians.
    pub angles_rad: Axes<f64>,
}

/// Parses lines one after the other.
#[derive(Debug, Clone)]
pub struct LineParser {
    check: RowCheck,
    line: u64,
}

/// The longest reasonable line; a longer one is rejected before it is parsed.
const MAX_LINE_BYTES: usize = 4096;

impl LineParser {
    /// Creates a parser for axes with the mechanical `ranges`; errors refer to the source as
    /// `name`.
    pub fn new(name: &str, ranges: Axes<AngleRange>) -> Self {
        Self { check: RowCheck::new(name, ranges), line: 0 }
    }

    /// Parses the next line, with or without its line end; returns `None` if it is to be skipped.
    ///
    /// # Errors
    ///
    /// Returns a [`SetpointError`] for an error in it. The parser is then ready for the next line.
    pub fn parse(&mut self, line: &[u8]) -> Result<Option<LineSetpoint>, SetpointError> {
        self.line += 1;
        if line.len() > MAX_LINE_BYTES {
            let problem = Problem::TooLarge { max_bytes: MAX_LINE_BYTES as u64 };
            return Err(self.check.error(Some(self.line), None, problem));
        }
        let Some(record) = fields(line) else { return Ok(None) };
        if record.iter().map(<[u8]>::trim_ascii).eq(TIMED.map(str::as_bytes)) {
            return Ok(None);
        }
        let setpoint = if record.len() <= 2 {
            LineSetpoint { time_s: None, angles_rad: self.check.untimed(self.line, &record)? }
        } else {
            let row = self.check.timed(self.line, &record)?;
            LineSetpoint { time_s: Some(row.time_s), angles_rad: row.angles_rad }
        };
        Ok(Some(setpoint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plant::GIMBAL;
    use proptest::prelude::*;

    fn parser() -> LineParser {
        LineParser::new("stdin", GIMBAL.map(|axis| axis.range))
    }

    #[test]
    fn applies_command_at_once_or_at_time() {
        let mut parser = parser();
        let angles_rad = Axes::new(0.5, -0.25);
        assert_eq!(parser.parse(b"0.5, -0.25\n"), Ok(Some(LineSetpoint { time_s: None, angles_rad })));
        assert_eq!(parser.parse(b"2,0.5,-0.25"), Ok(Some(LineSetpoint { time_s: Some(2.0), angles_rad })));
        for skipped in ["", "\r\n", "  # later", "time_s,pan_rad,tilt_rad\n"] {
            assert_eq!(parser.parse(skipped.as_bytes()), Ok(None));
        }
    }

    #[test]
    fn names_line_and_column_and_continues_with_next_line() {
        let mut parser = parser();
        let mut error = |line: &[u8]| parser.parse(line).unwrap_err().to_string();
        assert_eq!(error(b"0.5"), "stdin, line 1, column 2 (tilt_rad): is missing");
        assert_eq!(error(b"up,0"), "stdin, line 2, column 1 (pan_rad): \"up\" is not a number");
        let out_of_range = "the angle 9 rad is beyond the mechanical range of -2.5 to 2.5 rad";
        assert_eq!(error(b"9,0"), format!("stdin, line 3, column 1 (pan_rad): {out_of_range}"));
        assert_eq!(error(b"1,9,0"), format!("stdin, line 4, column 2 (pan_rad): {out_of_range}"));
        assert_eq!(error(&[b'1'; 5000]), "stdin, line 5: is larger than 4096 bytes");
        assert_eq!(error(b"-1,0,0"), "stdin, line 6, column 1 (time_s): the time -1 s is negative");
        assert!(parser.parse(b"3,0,0").is_ok());
        assert!(parser.parse(b"2,0,0").unwrap_err().to_string().contains("is before the 3 s"));
        assert!(parser.parse(b"0,0").is_ok());
    }

    proptest! {
        #[test]
        fn never_panics_on_arbitrary_bytes(lines: Vec<Vec<u8>>) {
            let mut parser = parser();
            for line in lines {
                let _ = parser.parse(&line);
            }
        }
    }
}
