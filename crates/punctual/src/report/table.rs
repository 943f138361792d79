//! A table for people: the first column left-aligned, the others right-aligned. Does not allocate:
//! it formats every cell twice, first to measure the width.

use core::fmt::{self, Write};

/// A column for rows of type `T`.
pub(crate) struct Column<T> {
    head: &'static str,
    cell: fn(&T, &mut dyn Write) -> fmt::Result,
    is_shown: fn(&[T]) -> bool,
}

impl<T> Column<T> {
    /// Creates a column with this header, whose cells `cell` writes.
    pub(crate) const fn new(head: &'static str, cell: fn(&T, &mut dyn Write) -> fmt::Result) -> Self {
        Self { head, cell, is_shown: |_| true }
    }

    /// Shows the column only if a row has a value in it.
    pub(crate) const fn shown_if(mut self, is_shown: fn(&[T]) -> bool) -> Self {
        self.is_shown = is_shown;
        self
    }

    fn width(&self, rows: &[T]) -> usize {
        let cells = rows.iter().map(|row| width(|to| (self.cell)(row, to)));
        cells.max().unwrap_or(0).max(self.head.chars().count())
    }
}

/// Prints rows under a header.
pub(crate) fn write<T, const N: usize>(
    f: &mut fmt::Formatter<'_>,
    columns: &[Column<T>; N],
    rows: &[T],
) -> fmt::Result {
    let mut widths = [0; N];
    let shown = || columns.iter().enumerate().filter(|(_, column)| (column.is_shown)(rows));
    for (index, column) in shown() {
        widths[index] = column.width(rows);
    }
    for (index, column) in shown() {
        cell(f, index, widths[index], &|to| to.write_str(column.head))?;
    }
    f.write_char('\n')?;
    let between = 2 * shown().count().saturating_sub(1);
    (0..widths.iter().sum::<usize>() + between).try_for_each(|_| f.write_char('─'))?;
    f.write_char('\n')?;
    for row in rows {
        for (index, column) in shown() {
            cell(f, index, widths[index], &|to| (column.cell)(row, to))?;
        }
        f.write_char('\n')?;
    }
    Ok(())
}

/// Prints a cell; the first column is always shown.
fn cell(
    f: &mut fmt::Formatter<'_>,
    column: usize,
    column_width: usize,
    text: &dyn Fn(&mut dyn Write) -> fmt::Result,
) -> fmt::Result {
    let pad = |f: &mut fmt::Formatter<'_>| {
        let padding = column_width.saturating_sub(width(text));
        (0..padding).try_for_each(|_| f.write_char(' '))
    };
    if column == 0 {
        text(f)?;
        pad(f)
    } else {
        f.write_str("  ")?;
        pad(f)?;
        text(f)
    }
}

/// Returns the number of characters that `text` writes.
fn width(text: impl Fn(&mut dyn Write) -> fmt::Result) -> usize {
    struct Counter(usize);

    impl Write for Counter {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 += text.chars().count();
            Ok(())
        }
    }

    let mut counter = Counter(0);
    // A counter does not fail.
    let _ = text(&mut counter);
    counter.0
}
