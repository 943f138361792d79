//! A table on a page.

use std::fmt::Write as _;

use super::{Align, Cell, Column, Kind, Row, Table, fraction, placed};
use crate::escape::{Escaped, NoBreak};

impl Table {
    /// Returns the table as HTML, in a box that scrolls on a narrow page; `label` is its accessible
    /// name.
    #[must_use]
    pub fn html(&self, label: &str) -> String {
        let mut out = format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table{}><thead>",
            Escaped(label),
            Class([self.class, "", ""])
        );
        self.heads(&mut out);
        out += "</thead><tbody>\n";
        let fractions: Vec<usize> = (0..self.columns.len()).map(|column| self.fraction(column)).collect();
        for row in &self.rows {
            let _ = write!(out, "<tr{}>", Class([row.class, "", ""]));
            match row.kind {
                Kind::Cells => {
                    placed(row).for_each(|(column, cell)| self.cell(column, cell, row, &fractions, &mut out));
                    let used: usize = row.cells.iter().map(|cell| cell.span).sum();
                    if used < self.columns.len() {
                        let _ = write!(out, "<td colspan=\"{}\"></td>", self.columns.len() - used);
                    }
                }
                Kind::Heading | Kind::Lines => {
                    let (columns, text) = (self.columns.len(), Escaped(&row.cells[0].text));
                    let _ = write!(out, "<th colspan=\"{columns}\">{text}</th>");
                }
            }
            out += "</tr>\n";
        }
        out += "</tbody></table></div>\n";
        out
    }

    /// Adds the header in one row, or in two if there are groups.
    fn heads(&self, out: &mut String) {
        let is_grouped = self.columns.iter().any(|column| !column.group.is_empty());
        let rows = if is_grouped { " rowspan=\"2\"" } else { "" };
        let mut below = String::new();
        *out += "<tr>";
        for (index, column) in self.columns.iter().enumerate() {
            let class = Class([column.align.class(), self.group_class(index), ""]);
            let head = Escaped(&column.head);
            if column.group.is_empty() {
                let _ = write!(out, "<th scope=\"col\"{class}{rows}>{head}</th>");
                continue;
            }
            if self.begins_group(index) {
                let of_group = |other: &&Column| other.group == column.group;
                let columns = self.columns[index..].iter().take_while(of_group).count();
                let group = Escaped(column.group);
                let _ = write!(
                    out,
                    "<th scope=\"colgroup\" class=\"left group\" colspan=\"{columns}\">{group}</th>"
                );
            }
            let _ = write!(below, "<th scope=\"col\"{class}>{head}</th>");
        }
        *out += "</tr>";
        if is_grouped {
            let _ = write!(out, "<tr>{below}</tr>");
        }
    }

    fn begins_group(&self, column: usize) -> bool {
        column > 0 && self.columns[column].group != self.columns[column - 1].group
    }

    fn group_class(&self, column: usize) -> &'static str {
        if self.begins_group(column) { "group" } else { "" }
    }

    fn cell(&self, column: usize, cell: &Cell, row: &Row, fractions: &[usize], out: &mut String) {
        let align = if cell.span > 1 { Align::Left } else { self.columns[column].align };
        let tag = if column == 0 { "th" } else { "td" };
        let _ = write!(out, "<{tag}");
        if column == 0 {
            *out += " scope=\"row\"";
        }
        let _ = write!(out, "{}", Class([align.class(), self.group_class(column), cell.class]));
        if cell.span > 1 {
            let _ = write!(out, " colspan=\"{}\"", cell.span);
        }
        if !cell.title.is_empty() {
            let _ = write!(out, " title=\"{}\"", Escaped(&cell.title));
        }
        *out += ">";
        if let Some((class, letters)) = &cell.lead {
            let _ = write!(out, "<i class=\"sign {}\">{}</i>", Escaped(class), Escaped(letters));
        }
        if !cell.link.is_empty() {
            let _ = write!(out, "<a href=\"{}\">", Escaped(&cell.link));
        }
        let _ = match align {
            Align::Left | Align::Wrap => write!(out, "{}", Escaped(&cell.text)),
            Align::Right | Align::Point => write!(out, "{}", NoBreak(&cell.text)),
        };
        if align == Align::Point {
            pad(fractions[column], fraction(&cell.text), out);
        }
        if !cell.link.is_empty() {
            *out += "</a>";
        }
        if column == 0 {
            row.marks.iter().for_each(|mark| *out += &format!(" <sup>{mark}</sup>"));
        }
        if !cell.below.is_empty() {
            let _ = write!(out, "<br><small>{}</small>", Escaped(&cell.below));
        }
        let _ = write!(out, "</{tag}>");
    }
}

/// Adds spaces as wide as the missing decimal point and decimals.
fn pad(all: usize, own: usize, out: &mut String) {
    let missing = all - own;
    if own == 0 && missing > 0 {
        out.push('\u{2008}');
        out.extend(std::iter::repeat_n('\u{2007}', missing - 1));
    } else {
        out.extend(std::iter::repeat_n('\u{2007}', missing));
    }
}

impl Align {
    fn class(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Wrap => "wrap",
            Self::Right | Self::Point => "",
        }
    }
}

/// A class attribute of the nonempty classes, if any.
struct Class([&'static str; 3]);

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let classes: Vec<&str> = self.0.into_iter().filter(|class| !class.is_empty()).collect();
        if classes.is_empty() {
            return Ok(());
        }
        write!(f, " class=\"{}\"", Escaped(&classes.join(" ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_text() {
        let evil = "\"'><script>";
        let mut table = Table::new([Column::left(evil), Column::micros(evil).group(evil)]);
        table.heading(evil);
        table.lines(evil);
        let cell = || Cell::new(evil).title(evil).sign(evil, evil).link(evil).below(evil).class(evil);
        table.row([cell(), cell()]).class(evil).marks(&[1]);
        table.row([Cell::new("x"), Cell::new(evil)]);
        let html = table.class(evil).html(evil);
        assert!(!html.contains("<script") && !html.contains("\"\""), "{html}");
        for tag in ["table", "tr", "th", "td", "i", "a", "small"] {
            let opened =
                html.matches(&format!("<{tag} ")).count() + html.matches(&format!("<{tag}>")).count();
            assert_eq!(opened, html.matches(&format!("</{tag}>")).count(), "{tag} in {html}");
        }
    }

    #[test]
    fn groups_share_header() {
        let columns = [
            Column::left("task"),
            Column::micros("max").group("R"),
            Column::micros("p50").group("R"),
            Column::right("jobs"),
        ];
        let mut table = Table::new(columns);
        table.row([Cell::new("a"), Cell::micros(1_500), Cell::micros(100_000), Cell::count(1_000)]);
        table.row([Cell::new("b"), Cell::micros(100_000), Cell::none().span(2)]);
        table.row([Cell::new("c")]);
        let html = table.html("");
        assert!(html.contains("class=\"left group\" colspan=\"2\">R</th>"), "{html}");
        assert!(html.contains(" rowspan=\"2\">jobs</th></tr><tr><th scope=\"col\" class=\"group\">max</th>"));
        assert!(html.contains("<td>100</td><td class=\"group\">1\u{202F}000</td>"), "{html}");
        // As wide as ".50".
        assert!(html.contains("<td class=\"group\">100\u{2008}\u{2007}\u{2007}</td>"), "{html}");
        assert!(html.contains("<td class=\"left muted\" colspan=\"2\">–</td>"), "{html}");
        assert!(html.contains(">c</th><td colspan=\"3\"></td></tr>"), "{html}");
    }
}
