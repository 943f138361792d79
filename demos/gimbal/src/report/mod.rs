//! The report of a run: as a page for readers, and as numbers for programs.
//!
//! [`RunSummary`] contains all of its data. [`to_html`] renders it as one self-contained file that
//! needs neither network nor scripts; [`to_json`] writes the same numbers for other programs.

mod charts;
pub mod data;
mod page;
mod tables;

pub use data::{
    AxisResponse, Clock, Condition, Distribution, FORMAT_VERSION, FirstStep, Meta, Outcome, RunSummary,
    SettingRow, StepResponse, TaskRow,
};

/// Returns the report as an HTML page.
pub fn to_html(summary: &RunSummary) -> String {
    page::page(summary)
}

/// Returns the report as JSON, with the field names of [`RunSummary`].
///
/// # Errors
///
/// No case is known: every field can be expressed in JSON (a number that is not finite becomes
/// `null`).
pub fn to_json(summary: &RunSummary) -> serde_json::Result<String> {
    serde_json::to_string(summary)
}
