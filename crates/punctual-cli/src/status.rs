//! Exit statuses, the same for every command.

use std::process::ExitCode;

use crate::output::message;

/// Success: the answer is yes.
pub(crate) const GOOD: u8 = 0;
/// There is a finding, or a result is missing.
pub(crate) const FINDING: u8 = 1;
/// The command line or another input is invalid, or the answer is unknown.
pub(crate) const BAD_INPUT: u8 = 2;
/// Ctrl-C ended a measurement.
pub(crate) const INTERRUPTED: u8 = 130;

/// Returns the exit status of a command, and prints the error in its input.
pub(crate) fn end(ended: Result<u8, String>) -> ExitCode {
    ExitCode::from(ended.unwrap_or_else(|error| {
        message!("error: {error}");
        BAD_INPUT
    }))
}

/// The table of the manual.
pub(crate) const TABLE: [(&str, &str); 5] = [
    ("0", "success, or the answer is yes"),
    (
        "1",
        "a finding: a broken rule, a missed deadline, a regression, an unfit machine, a refused change, a failed recording, or a result that could not be written",
    ),
    ("2", "an invalid command line or input, such as a missing file; of check and rta also: unknown"),
    ("130", "Ctrl-C ended a measurement"),
    (
        "other",
        "that of the command which trace record, trace watch, isolate run or supervise ran: 128 + n if signal n ended it",
    ),
];

/// Returns the table, for `--help`, manual pages and the book.
pub(crate) fn table() -> String {
    let line = |(status, meaning): (&str, &str)| {
        punctual_report::text::wrapped(&format!("  {status:<7}"), meaning, 9, 80)
    };
    format!("Exit status:\n{}", TABLE.map(line).concat().trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn book_has_the_same_table() {
        let page = include_str!("../../../docs/book/src/reference/environment.md");
        let rows = TABLE.map(|(status, meaning)| format!("| {status} | {meaning} |\n"));
        let table = format!("| exit status | meaning |\n|---|---|\n{}", rows.concat());
        assert!(page.contains(&table), "environment.md lacks\n{table}");
    }
}
