//! Setpoints from a CSV file with the header `time_s,pan_rad,tilt_rad`.
//!
//! Blank lines and lines that start with `#` are skipped.

use super::row::{HEADER, RowCheck, TIMED, fields, quoted};
use super::{Problem, SetpointError, Timeline};
use crate::axes::Axes;
use crate::plant::AngleRange;
use csv::ByteRecord;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The maximum number of bytes read from a file; a gimbal does not need more than half a million
/// setpoints.
pub const MAX_FILE_BYTES: u64 = 16 << 20;

/// Reads setpoints from the file at `path`, for axes with the mechanical `ranges`.
///
/// # Errors
///
/// Returns a [`SetpointError`] for the first error.
pub fn read_file(path: &Path, ranges: Axes<AngleRange>) -> Result<Timeline, SetpointError> {
    let name = path.display().to_string();
    match File::open(path) {
        Ok(file) => read(file, &name, ranges),
        Err(error) => {
            Err(RowCheck::new(&name, ranges).error(None, None, Problem::Unreadable(error.to_string())))
        }
    }
}

/// Reads setpoints from `input`, which errors refer to as `name`.
///
/// # Errors
///
/// Returns a [`SetpointError`] for the first error.
pub fn read(input: impl Read, name: &str, ranges: Axes<AngleRange>) -> Result<Timeline, SetpointError> {
    let mut check = RowCheck::new(name, ranges);
    let mut bytes = Vec::new();
    let unreadable = |error: std::io::Error| check.error(None, None, Problem::Unreadable(error.to_string()));
    // One byte more than allowed distinguishes a full file from a truncated one.
    input.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(check.error(None, None, Problem::TooLarge { max_bytes: MAX_FILE_BYTES }));
    }

    // Some editors put a byte order mark before the text; it belongs to the encoding, not to the
    // header.
    let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
    let mut rows =
        (1..).zip(text.split(|&byte| byte == b'\n')).filter_map(|(n, line)| Some((n, fields(line)?)));

    let Some((line, names)) = rows.next() else {
        return Err(check.error(None, None, Problem::Empty { header: HEADER }));
    };
    check_header(&check, line, &names)?;
    let mut timeline = Timeline::new();
    for (line, record) in rows {
        let row = check.timed(line, &record)?;
        timeline.push(row.time_s, row.angles_rad);
    }
    if timeline.is_empty() {
        return Err(check.error(None, None, Problem::NoSetpoints));
    }
    Ok(timeline)
}

fn check_header(check: &RowCheck, line: u64, names: &ByteRecord) -> Result<(), SetpointError> {
    for (index, expected) in TIMED.into_iter().enumerate() {
        let problem = match names.get(index) {
            None => Problem::Missing,
            Some(found) if found.trim_ascii() == expected.as_bytes() => continue,
            Some(found) => Problem::Header { found: quoted(found.trim_ascii()), expected },
        };
        return Err(check.error(Some(line), Some((index, expected)), problem));
    }
    match names.get(TIMED.len()) {
        None => Ok(()),
        Some(found) => {
            let problem = Problem::Extra { found: quoted(found), columns: HEADER };
            Err(check.error(Some(line), Some((TIMED.len(), "")), problem))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plant::GIMBAL;
    use proptest::prelude::*;

    fn parse(text: &[u8]) -> Result<Timeline, SetpointError> {
        read(text, "steps.csv", GIMBAL.map(|axis| axis.range))
    }

    #[track_caller]
    fn assert_error(text: impl AsRef<[u8]>, expected: &str) {
        assert_eq!(parse(text.as_ref()).unwrap_err().to_string(), expected);
    }

    #[test]
    fn reads_valid_file() {
        let text = "\u{feff}# pan only\r\n time_s, pan_rad ,tilt_rad\r\n\r\n0,0.5,0\r\n1.5,\"-0.5\",-1e-1";
        let timeline = parse(text.as_bytes()).unwrap();
        assert_eq!(timeline.len(), 2);
        assert_eq!(timeline.at(0), Axes::new(0.5, 0.0));
        assert_eq!(timeline.at(2_000_000_000), Axes::new(-0.5, -0.1));
    }

    #[test]
    fn names_line_and_column_of_error() {
        const H: &str = "time_s,pan_rad,tilt_rad\n";
        let cases = [
            ("0,1\n", "line 2, column 3 (tilt_rad): is missing"),
            ("0,1,\n", "line 2, column 3 (tilt_rad): is missing"),
            (
                "0,1,0,7\n",
                "line 2, column 4: \"7\" is one value too many: a line has time_s,pan_rad,tilt_rad",
            ),
            ("0,0,0\n\n# x\n1,left,0", "line 5, column 2 (pan_rad): \"left\" is not a number"),
            ("0,\u{7f},0", "line 2, column 2 (pan_rad): \"\\u{7f}\" is not a number"),
            ("0,NaN,0", "line 2, column 2 (pan_rad): \"NaN\" is not a finite number"),
            ("0,0,-inf", "line 2, column 3 (tilt_rad): \"-inf\" is not a finite number"),
            ("-1,0,0", "line 2, column 1 (time_s): the time -1 s is negative"),
            (
                "1,0,0\n0.5,0,0",
                "line 3, column 1 (time_s): the time 0.5 s is before the 1 s of the line above",
            ),
            (
                "0,0,1.25",
                "line 2, column 3 (tilt_rad): the angle 1.25 rad is beyond the mechanical range of \
                 -1 to 1 rad",
            ),
        ];
        for (rows, expected) in cases {
            assert_error(format!("{H}{rows}"), &format!("steps.csv, {expected}"));
        }
    }

    #[test]
    fn requires_header() {
        assert_error("", "steps.csv: is empty; the first line must be `time_s,pan_rad,tilt_rad`");
        assert_error("\n\n", "steps.csv: is empty; the first line must be `time_s,pan_rad,tilt_rad`");
        assert_error("time_s,pan_rad,tilt_rad\n", "steps.csv: has a header but no setpoints");
        let named_0 = "steps.csv, line 1, column 1 (time_s): the header has \"0\" instead of `time_s`";
        assert_error("0,0,0\n", named_0);
        assert_error("time_s,pan_rad", "steps.csv, line 1, column 3 (tilt_rad): is missing");
        let extra =
            "steps.csv, line 1, column 4: \"x\" is one value too many: a line has time_s,pan_rad,tilt_rad";
        assert_error("time_s,pan_rad,tilt_rad,x", extra);
    }

    #[test]
    fn rejects_other_line_ends() {
        assert!(parse(b"time_s,pan_rad,tilt_rad\r0,0,0\r").is_err());
    }

    #[test]
    fn names_unreadable_file() {
        let path = std::env::temp_dir().join("gimbal-no-such-directory").join("steps.csv");
        let error = read_file(&path, GIMBAL.map(|axis| axis.range)).unwrap_err();
        assert!(matches!(error.problem, Problem::Unreadable(_)));
        assert!(error.to_string().starts_with(&path.display().to_string()));
    }

    #[test]
    fn rejects_endless_file() {
        let endless = std::io::repeat(b'0');
        let error = read(endless, "zeros", GIMBAL.map(|axis| axis.range)).unwrap_err();
        assert_eq!(error.to_string(), "zeros: is larger than 16777216 bytes");
    }

    proptest! {
        #[test]
        fn never_panics_on_arbitrary_bytes(bytes: Vec<u8>) {
            let _ = parse(&bytes);
        }

        #[test]
        fn never_panics_nor_leaves_range_on_arbitrary_rows(rows in "([-0-9.,e\\r\\n\"# naif]|1,){0,60}") {
            if let Ok(timeline) = parse(format!("time_s,pan_rad,tilt_rad\n{rows}").as_bytes()) {
                let wanted = timeline.at(timeline.end_ns());
                prop_assert!(GIMBAL.pan.range.contains(wanted.pan));
                prop_assert!(GIMBAL.tilt.range.contains(wanted.tilt));
            }
        }
    }
}
