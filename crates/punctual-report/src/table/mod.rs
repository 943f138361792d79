//! A table with two outputs: `{}` prints aligned text, and [`Table::html`] returns HTML for a page.
//!
//! The first column names the row. Columns of microseconds are aligned at the decimal point in both
//! forms.
//!
//! ```
//! use punctual_report::table::{Cell, Column, Table};
//!
//! let mut table = Table::new([Column::left("task"), Column::micros("max µs"), Column::right("misses")]);
//! table.row([Cell::new("control"), Cell::micros(1_234), Cell::fault(2)]).marks(&[1]);
//! table.row([Cell::new("log"), Cell::micros(812_000), Cell::fault(0)]);
//! assert_eq!(
//!     table.to_string(),
//!     "task     max µs  misses\n\
//!      control    1.23       2  [1]\n\
//!      log      812          0\n"
//! );
//! assert!(table.html("Tasks").contains("<td class=\"fault\">2</td>"));
//! ```

mod html;

use std::fmt::{self, Display, Formatter};

use crate::format::{NONE, format_count, format_micros, format_nanos};
use crate::text::shortened;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Align {
    Left,
    /// Left-aligned, and wrapped on a page.
    Wrap,
    Right,
    /// Aligned at the decimal point.
    Point,
}

/// A column and its header.
#[derive(Debug, Clone)]
pub struct Column {
    head: String,
    group: &'static str,
    align: Align,
    width: usize,
    most: usize,
    opens: bool,
    names: bool,
}

impl Column {
    fn new(head: impl Into<String>, align: Align) -> Self {
        Self { head: head.into(), group: "", align, width: 0, most: usize::MAX, opens: false, names: false }
    }

    /// Creates a column of words.
    pub fn left(head: impl Into<String>) -> Self {
        Self::new(head, Align::Left)
    }

    /// Creates a column of words that a page may wrap.
    pub fn wrap(head: impl Into<String>) -> Self {
        Self::new(head, Align::Wrap)
    }

    /// Creates a column of numbers.
    pub fn right(head: impl Into<String>) -> Self {
        Self::new(head, Align::Right)
    }

    /// Creates a column of numbers of one unit, aligned at the decimal point.
    pub fn micros(head: impl Into<String>) -> Self {
        Self::new(head, Align::Point)
    }

    /// Shares a header with adjacent columns of the same group.
    #[must_use]
    pub fn group(mut self, group: &'static str) -> Self {
        self.group = group;
        self
    }

    /// Sets the smallest width as text, in characters, so that consecutive tables line up.
    #[must_use]
    pub fn at_least(mut self, width: usize) -> Self {
        self.width = width;
        self
    }

    /// Starts a separate table, if the whole does not fit: see [`Table::within`].
    #[must_use]
    pub fn opens(mut self) -> Self {
        self.opens = true;
        self
    }

    /// Makes this column name the row, together with those before it: see [`Table::within`].
    #[must_use]
    pub fn names(mut self) -> Self {
        self.names = true;
        self
    }

    /// Sets the largest width as text, in characters; longer words lose their middle.
    #[must_use]
    pub fn at_most(mut self, width: usize) -> Self {
        self.most = width;
        self
    }
}

/// A cell of a row.
#[derive(Debug, Clone)]
pub struct Cell {
    text: String,
    class: &'static str,
    title: String,
    lead: Option<(&'static str, String)>,
    link: String,
    below: String,
    span: usize,
}

impl Cell {
    /// Creates a cell with a text.
    pub fn new(text: impl Into<String>) -> Self {
        let (title, link, below) = Default::default();
        Self { text: text.into(), class: "", title, lead: None, link, below, span: 1 }
    }

    /// Creates a cell with a count.
    #[must_use]
    pub fn count(count: u64) -> Self {
        Self::new(format_count(count))
    }

    /// Creates a cell with a count that should be zero.
    #[must_use]
    pub fn fault(count: u64) -> Self {
        Self::count(count).class(if count > 0 { "fault" } else { "muted" })
    }

    /// Creates a cell with nanoseconds, in microseconds without the unit; a dash if unknown.
    pub fn micros(ns: impl Into<Option<u64>>) -> Self {
        ns.into().map_or(Self::none(), |ns| Self::new(format_micros(ns)))
    }

    /// Creates a cell with nanoseconds, in the suitable unit; a dash if unknown.
    pub fn nanos(ns: impl Into<Option<f64>>) -> Self {
        ns.into().map_or(Self::none(), |ns| Self::new(format_nanos(ns)))
    }

    /// Creates a cell with an unknown value.
    #[must_use]
    pub fn none() -> Self {
        Self::new(NONE).class("muted")
    }

    /// Adds classes of the style sheet, for pages.
    #[must_use]
    pub fn class(mut self, class: &'static str) -> Self {
        self.class = class;
        self
    }

    /// Adds a tooltip, for pages.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Makes the cell a link to the element with this ID, on pages.
    #[must_use]
    pub fn link(mut self, id: &str) -> Self {
        self.link = format!("#{id}");
        self
    }

    /// Prepends a colored badge, which may contain a few letters.
    #[must_use]
    pub fn sign(mut self, class: &'static str, letters: impl Into<String>) -> Self {
        self.lead = Some((class, letters.into()));
        self
    }

    /// Adds a second line in small print, on pages.
    #[must_use]
    pub fn below(mut self, text: impl Into<String>) -> Self {
        self.below = text.into();
        self
    }

    /// Makes the cell span this many columns.
    #[must_use]
    pub fn span(mut self, columns: usize) -> Self {
        self.span = columns.max(1);
        self
    }

    fn plain(&self) -> String {
        match &self.lead {
            Some((_, letters)) if !letters.is_empty() => format!("{letters:<2} {}", self.text),
            _ => self.text.clone(),
        }
    }
}

/// A row.
#[derive(Debug, Clone)]
pub struct Row {
    cells: Vec<Cell>,
    class: &'static str,
    marks: Vec<usize>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Cells,
    Heading,
    Lines,
}

impl Row {
    /// Adds a class of the style sheet, for pages.
    pub fn class(&mut self, class: &'static str) -> &mut Self {
        self.class = class;
        self
    }

    /// Sets the numbers of the row's footnotes.
    pub fn marks(&mut self, marks: &[usize]) -> &mut Self {
        self.marks = marks.to_vec();
        self
    }
}

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Row>,
    class: &'static str,
    indent: usize,
}

impl Table {
    /// Creates a table without rows.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new(), class: "", indent: 0 }
    }

    /// Adds a class of the style sheet, for pages.
    #[must_use]
    pub fn class(mut self, class: &'static str) -> Self {
        self.class = class;
        self
    }

    /// Indents the text output by this many spaces, except for headings.
    #[must_use]
    pub fn indent(mut self, spaces: usize) -> Self {
        self.indent = spaces;
        self
    }

    /// Returns `true` if the table has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) -> &mut Row {
        self.push(cells.into_iter().collect(), Kind::Cells)
    }

    /// Adds a heading for the following rows.
    pub fn heading(&mut self, text: impl Into<String>) {
        self.push(vec![Cell::new(text)], Kind::Heading);
    }

    /// Adds lines unchanged.
    pub fn lines(&mut self, text: impl Into<String>) {
        self.push(vec![Cell::new(text)], Kind::Lines);
    }

    fn push(&mut self, cells: Vec<Cell>, kind: Kind) -> &mut Row {
        self.rows.push(Row { cells, class: "", marks: Vec::new(), kind });
        self.rows.last_mut().expect("it has just been added")
    }

    /// Returns the rows as text, without the column headers.
    #[must_use]
    pub fn body(&self) -> String {
        let widths = self.widths();
        self.rows.iter().map(|row| self.line_of(row, &widths)).collect()
    }

    /// Returns the column headers as text.
    #[must_use]
    pub fn head(&self) -> String {
        let heads = self.columns.iter().zip(self.widths()).map(|(column, width)| {
            let head = column.head();
            match column.align {
                Align::Left | Align::Wrap => format!("{head:width$}"),
                // Above the digits before the point, rather than above missing decimals.
                Align::Right | Align::Point => format!("{head:>width$}"),
            }
        });
        self.line(&heads.collect::<Vec<_>>())
    }

    /// Returns the table as text of at most this width, unless a column with the naming columns
    /// before it is wider. Columns that do not fit follow in separate tables, each of which repeats
    /// the columns that name the rows. A column without a header stays before the column to which
    /// it belongs.
    #[must_use]
    pub fn within(&self, width: usize) -> String {
        let widths = self.widths();
        let wide =
            |columns: &[usize]| self.indent + columns.iter().map(|&at| widths[at] + 2).sum::<usize>() - 2;
        let is_plain = |row: &Row| row.kind == Kind::Cells && row.cells.iter().all(|cell| cell.span == 1);
        let all: Vec<usize> = (0..self.columns.len()).collect();
        if wide(&all) <= width || !self.rows.iter().all(is_plain) {
            return self.to_string();
        }
        let names = 1 + self.columns[1..].iter().take_while(|column| column.names).count();
        let (names, mut rest) = all.split_at(names);
        let mut parts: Vec<Vec<usize>> = vec![names.to_vec()];
        while let Some(headed) = rest.iter().position(|&at| !self.columns[at].head().is_empty()) {
            let (next, after) = rest.split_at(headed + 1);
            rest = after;
            let part = parts.last_mut().expect("there is one");
            let opens = self.columns[next[0]].opens;
            if part.len() > names.len() && (opens || wide(&[part, next].concat()) > width) {
                parts.push([names, next].concat());
            } else {
                part.extend(next);
            }
        }
        let texts: Vec<String> = parts.iter().map(|part| self.part(part).to_string()).collect();
        texts.join("\n")
    }

    /// Returns the table with these columns only.
    fn part(&self, columns: &[usize]) -> Self {
        let cells = |row: &Row| columns.iter().filter_map(|&at| row.cells.get(at).cloned()).collect();
        let rows = self.rows.iter().map(|row| Row { cells: cells(row), ..row.clone() });
        // Omits rows that only continue another column.
        let rows = rows.filter(|row| row.cells.iter().any(|cell| !cell.text.is_empty()));
        let columns = columns.iter().map(|&at| self.columns[at].clone()).collect();
        Self { columns, rows: rows.collect(), ..*self }
    }

    /// Returns the width of each column, in characters.
    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> =
            self.columns.iter().map(|column| column.width.max(column.head().chars().count())).collect();
        for (column, cell) in self.rows.iter().flat_map(placed).filter(|(_, cell)| cell.span == 1) {
            let fraction = self.fraction(column) - fraction(&cell.text) * self.is_pointed(column);
            let width = (cell.plain().chars().count() + fraction).min(self.columns[column].most);
            widths[column] = widths[column].max(width);
        }
        widths
    }

    fn is_pointed(&self, column: usize) -> usize {
        usize::from(self.columns[column].align == Align::Point)
    }

    /// Returns the number of characters of a column from the decimal point on.
    fn fraction(&self, column: usize) -> usize {
        let cells = self.rows.iter().flat_map(placed).filter(|&(at, cell)| at == column && cell.span == 1);
        cells.map(|(_, cell)| fraction(&cell.text)).max().unwrap_or(0) * self.is_pointed(column)
    }

    fn line_of(&self, row: &Row, widths: &[usize]) -> String {
        match row.kind {
            Kind::Heading => return format!("{}\n", row.cells[0].text),
            Kind::Lines => return format!("{}\n", row.cells[0].text.trim_end()),
            Kind::Cells => {}
        }
        let mut cells: Vec<String> = Vec::new();
        for (index, cell) in placed(row) {
            let column = &self.columns[index];
            let room = widths[index..index + cell.span].iter().sum::<usize>() + 2 * (cell.span - 1);
            let text = shortened(&cell.plain(), if cell.span == 1 { room } else { usize::MAX });
            cells.push(match column.align {
                _ if cell.span > 1 => format!("{text:room$}"),
                Align::Left | Align::Wrap => format!("{text:room$}"),
                Align::Right => format!("{text:>room$}"),
                Align::Point => {
                    let pad = self.fraction(index) - fraction(&cell.text);
                    format!("{text:>room$}{:pad$}", "", room = room - pad)
                }
            });
        }
        let marks: String = row.marks.iter().map(|mark| format!("[{mark}]")).collect();
        self.line(&[cells, vec![marks]].concat())
    }

    fn line(&self, cells: &[String]) -> String {
        let line = cells.join("  ");
        format!("{:indent$}{}\n", "", line.trim_end(), indent = self.indent)
    }
}

impl Column {
    fn head(&self) -> String {
        format!("{} {}", self.group, self.head).trim_start().to_owned()
    }
}

/// Returns the cells of a row with their first columns; lines of text have none.
fn placed(row: &Row) -> impl Iterator<Item = (usize, &Cell)> {
    let cells = if row.kind == Kind::Cells { &row.cells[..] } else { &[] };
    cells.iter().scan(0, |column, cell| {
        let at = *column;
        *column += cell.span;
        Some((at, cell))
    })
}

/// Returns the number of characters from the decimal point on.
fn fraction(text: &str) -> usize {
    text.find('.').map_or(0, |point| text[point..].chars().count())
}

impl Display for Table {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.head())?;
        f.write_str(&self.body())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligns_decimal_points() {
        let mut table = Table::new([Column::left(""), Column::micros("µs"), Column::right("n")]).indent(1);
        for text in ["0", "0.007", "10.0", "≤ 1.00", "1 234 568"] {
            table.row([Cell::new("x"), Cell::new(text), Cell::count(1)]);
        }
        let expected = [
            "               µs  n",
            " x          0      1",
            " x          0.007  1",
            " x         10.0    1",
            " x        ≤ 1.00   1",
            " x  1 234 568      1",
        ];
        assert_eq!(table.to_string().lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn headings_spans_and_marks_keep_to_their_place() {
        let columns = [Column::left("").at_least(6).at_most(6), Column::right("a"), Column::right("b")];
        let mut table = Table::new(columns).indent(2);
        table.heading("a group of rows");
        table.row([Cell::new("a long name"), Cell::nanos(5.0), Cell::nanos(None)]);
        table.row([Cell::new("x"), Cell::new("not measured").span(2)]).marks(&[1, 3]);
        table.lines("    as it is");
        let expected = [
            "                a  b",
            "a group of rows",
            "  a l…me  5.00 ns  –",
            "  x       not measured  [1][3]",
            "    as it is",
        ];
        assert_eq!(table.to_string().lines().collect::<Vec<_>>(), expected);
        assert_eq!(table.head() + &table.body(), table.to_string());
    }

    #[test]
    fn wraps_cells_that_are_too_wide() {
        let mut table = Table::new([
            Column::left("task"),
            Column::right("J"),
            Column::right("C"),
            Column::left("").opens(),
            Column::right("bound"),
            Column::right("seen"),
        ]);
        table.row(["a", "1", "20", "≤", "21", "3"].map(Cell::new));
        assert_eq!(table.within(27), table.to_string());
        let two = "task  J   C\na     1  20\n\ntask     bound  seen\na     ≤     21     3\n";
        assert_eq!(table.within(26), two);
        let three = "task  J   C\na     1  20\n\ntask     bound\na     ≤     21\n\ntask  seen\na        3\n";
        assert_eq!(table.within(14), three);
        assert!(table.within(1).starts_with("task  J\na     1\n\ntask   C\n"));
        table.columns[1].names = true;
        let named = "task  J   C\na     1  20\n\ntask  J     bound  seen\na     1  ≤     21     3\n";
        assert_eq!(table.within(26), named);
        // Words across columns are not split.
        table.heading("b");
        assert_eq!(table.within(20), table.to_string());
    }

    #[test]
    fn prints_heads_of_empty_table() {
        let table = Table::new([Column::left("task"), Column::micros("max").group("R")]);
        assert_eq!((table.to_string(), table.is_empty()), ("task  R max\n".into(), true));
    }
}
