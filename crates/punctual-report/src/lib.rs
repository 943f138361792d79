//! Tables, charts and pages in the common style of Punctual's reports.
//!
//! [`format`](mod@format), [`text`] and [`table`] produce text for a terminal; [`page`] produces
//! pages, which contain tables and the drawings of [`chart`] and [`histogram`]. The crate is
//! independent of the content of reports.
//!
//! A page is one file without scripts of this crate, and needs no network and no fonts. Text
//! arguments become text, never markup. Only arguments documented as *HTML* are inserted unchanged;
//! classes are `&'static str` for that reason.
//!
//! ```
//! use punctual_report::page::{Figure, Frame, Page};
//! use punctual_report::table::{Cell, Column, Table};
//!
//! let mut table = Table::new([Column::left("task"), Column::right("max µs")]);
//! table.row([Cell::new("<control>"), Cell::micros(81_960)]);
//! assert_eq!(table.to_string(), "task       max µs\n<control>    82.0\n");
//!
//! let mut page = Page::new(&Frame { title: "A run", ..Frame::default() });
//! page.figures(&[Figure::new("Longest response", "82.0 µs", "<control>")]);
//! page.body().push_str(&table.html("Response times"));
//! assert!(page.finish().contains("&lt;control&gt;"));
//! ```

pub mod chart;
pub mod escape;
pub mod format;
pub mod histogram;
pub mod page;
pub mod scale;
pub mod svg;
pub mod table;
pub mod text;
