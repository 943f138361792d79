//! The account of a run: as a page to look at, and as numbers to work with.
//!
//! [`RunSummary`] is all there is to tell. [`to_html`] makes one self-contained file of it, which needs
//! neither network nor scripts; [`to_json`] writes the same numbers for other programs.

mod charts;
pub mod data;
mod page;
mod tables;

pub use data::{
    AxisResponse, Clock, Condition, Distribution, FORMAT_VERSION, Meta, Outcome, RunSummary, SettingRow,
    StepResponse, TaskRow,
};

/// The report as a page of HTML.
pub fn to_html(summary: &RunSummary) -> String {
    page::page(summary)
}

/// The report as JSON, with the field names of [`RunSummary`].
///
/// # Errors
///
/// None that is known: every field can be expressed in JSON (a number that is not finite becomes `null`).
pub fn to_json(summary: &RunSummary) -> serde_json::Result<String> {
    serde_json::to_string(summary)
}
