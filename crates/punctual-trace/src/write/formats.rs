//! Event formats of a kernel (6.18, x86-64), for synthetic traces.
//!
//! ```
//! use punctual_trace::write::formats;
//!
//! assert!(formats::all().iter().any(|format| format.name == "sched_switch"));
//! ```

use crate::format::fields::EventFormat;

/// `header_page`.
pub const HEADER_PAGE: &str = include_str!("header_page.txt");
/// `header_event`.
pub const HEADER_EVENT: &str = include_str!("header_event.txt");

const FORMATS: &str = include_str!("formats.txt");

/// Returns the groups and texts of the format files.
pub fn texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    FORMATS.split("group: ").skip(1).filter_map(|part| part.split_once('\n'))
}

/// Returns the parsed formats.
pub fn all() -> Vec<EventFormat> {
    texts().filter_map(|(group, text)| EventFormat::parse(group, text.as_bytes()).ok()).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn parses_or_rejects_any_text() {
        assert_eq!(super::all().len(), super::texts().count());
        assert_eq!(super::texts().count(), 31);
    }
}
