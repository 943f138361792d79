//! The tables of the page: figures of a group, checks, and what has changed.

use std::fmt::{self, Write};

use punctual_html::Escaped;

use super::colour;
use crate::compare::{Change, Comparison};
use crate::grouping::{Footnotes, Group, ratio_text};
use crate::model::{Check, Row};
use crate::text::quantity_text;
use crate::time::humane;

/// The figures of a group, maximum first.
pub(super) fn figures(
    group: &Group<'_>,
    empty_ns: f64,
    footnotes: &mut Footnotes,
    out: &mut impl Write,
) -> fmt::Result {
    out.write_str(
        "<div class=\"scroll\"><table><thead><tr><th></th><th>max</th><th>p99</th><th>p50</th><th>min</th><th>mean</th>\
         <th>σ</th><th>samples</th>",
    )?;
    let any_ratio = group.rows.iter().any(|row| group.ratio(row, empty_ns).is_some());
    let last = |text: String| if any_ratio { format!("<td>{text}</td>") } else { String::new() };
    writeln!(out, "{}</tr></thead><tbody>", if any_ratio { "<th>p50 : POSIX</th>" } else { "" })?;
    for row in &group.rows {
        let class = if row.why.is_empty() { "" } else { " class=\"doubtful\"" };
        write!(
            out,
            "<tr{class}><th><i class=\"{}\"></i>{}{}</th>",
            colour(&row.subject),
            Escaped(&row.subject),
            marks(&row.why, footnotes)
        )?;
        match &row.figures {
            Some(f) => {
                for ns in [f.max_ns, f.p99_ns, f.p50_ns, f.min_ns, f.mean_ns, f.sigma_ns] {
                    write!(out, "<td>{}</td>", humane(ns))?;
                }
                let ratio = group.ratio(row, empty_ns).map_or(String::new(), ratio_text);
                writeln!(out, "<td>{}</td>{}</tr>", f.samples, last(ratio))?;
            }
            None => writeln!(out, "<td colspan=\"8\" class=\"none\">not measured</td></tr>")?,
        }
    }
    let mut shown = Vec::new();
    for line in group.rows.iter().flat_map(|row| &row.published) {
        if shown.contains(&line) {
            continue;
        }
        shown.push(line);
        let time = |ns: Option<f64>| ns.map_or("–".into(), humane);
        let source = footnotes.number(&format!("published: {}", line.source));
        writeln!(
            out,
            "<tr class=\"published\"><th>published: {} <sup>{source}</sup></th><td>{}</td><td>–</td><td>–</td><td>{}</td>\
             <td>{}</td><td>{}</td><td></td>{}</tr>",
            Escaped(&line.system),
            time(line.max_ns),
            time(line.min_ns),
            humane(line.mean_ns),
            time(line.sigma_ns),
            last(String::new())
        )?;
    }
    out.write_str("</tbody></table></div>\n")?;
    group.rows.iter().try_for_each(|row| details(row, out))
}

/// Single numbers and causes of a row.
fn details(row: &Row, out: &mut impl Write) -> fmt::Result {
    if !row.quantities.is_empty() {
        write!(out, "<p class=\"quantities\"><b>{}</b>", Escaped(&row.subject))?;
        for quantity in &row.quantities {
            write!(out, " · {}: {}", Escaped(&quantity.name), Escaped(&quantity_text(quantity)))?;
        }
        out.write_str("</p>\n")?;
    }
    if row.causes.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<div class=\"scroll\"><table><thead><tr><th>{}: what took the time</th><th>at most at once</th><th>in all</th>\
         <th>gaps mostly due to it</th></tr></thead><tbody>",
        Escaped(&row.subject)
    )?;
    for cause in &row.causes {
        writeln!(
            out,
            "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
            Escaped(&cause.name),
            humane(cause.max_ns),
            humane(cause.total_ns),
            cause.count
        )?;
    }
    out.write_str("</tbody></table></div>\n")
}

/// Rules and what was seen.
pub(super) fn checks(checks: &[Check], footnotes: &mut Footnotes, out: &mut impl Write) -> fmt::Result {
    out.write_str(
        "<div class=\"scroll\"><table class=\"checks\"><thead><tr><th>rule</th><th>subject</th><th>verdict</th>\
         <th>observed</th></tr></thead><tbody>\n",
    )?;
    for check in checks {
        write!(
            out,
            "<tr><th>{}</th><td>{}</td><td class=\"{}\">{}{}</td><td>{}",
            Escaped(&check.rule),
            Escaped(&check.subject),
            match check.verdict {
                crate::model::Verdict::Passed => "pass",
                crate::model::Verdict::Failed => "fail",
                _ => "none",
            },
            check.verdict.text(),
            marks(&check.why, footnotes),
            Escaped(&check.observed)
        )?;
        if check.expected != check.observed && !check.observed.starts_with(&check.expected) {
            write!(out, "<br><small>expected: {}</small>", Escaped(&check.expected))?;
        }
        out.write_str("</td></tr>\n")?;
    }
    out.write_str("</tbody></table></div>\n")
}

/// What has changed since an earlier run, regressions first.
pub(super) fn comparison(comparison: &Comparison, out: &mut impl Write) -> fmt::Result {
    writeln!(
        out,
        "<section id=\"comparison\"><h2>Compared with the run of {}</h2><p>{} regressions: a median that has grown by more \
         than a tenth, with middle halves that do not overlap, or a rule that was kept and is not.</p>",
        Escaped(&comparison.old_started),
        comparison.regressions()
    )?;
    for note in &comparison.notes {
        writeln!(out, "<p class=\"note\">{}</p>", Escaped(note))?;
    }
    if comparison.rows.is_empty() && comparison.checks.is_empty() {
        return out.write_str("<p>Nothing that both have measured differs.</p></section>\n");
    }
    out.write_str(
        "<div class=\"scroll\"><table><thead><tr><th>row</th><th>p50 before</th><th>p50 now</th><th>ratio</th>\
         <th>ratio of maxima</th><th></th></tr></thead><tbody>\n",
    )?;
    for check in &comparison.checks {
        let (old, new) = check.verdicts;
        let class = if check.is_regression() { "fail" } else { "" };
        writeln!(
            out,
            "<tr><th>{}</th><td>{}</td><td>{}</td><td></td><td></td><td class=\"{class}\">{}</td></tr>",
            Escaped(&check.id),
            old.text(),
            new.text(),
            if check.is_regression() { Change::Slower.text() } else { "changed" }
        )?;
    }
    for row in sorted(comparison) {
        let time = |ns: Option<f64>| ns.map_or("–".into(), humane);
        let ratio = |ratio: Option<f64>| ratio.map_or("–".into(), ratio_text);
        let class = match row.change {
            Change::Slower => "fail",
            Change::Faster => "pass",
            _ => "none",
        };
        writeln!(
            out,
            "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"{class}\">{}</td></tr>",
            Escaped(&row.id),
            time(row.p50_ns.map(|(old, _)| old)),
            time(row.p50_ns.map(|(_, new)| new)),
            ratio(row.p50_ratio),
            ratio(row.max_ratio),
            row.change.text()
        )?;
    }
    out.write_str("</tbody></table></div></section>\n")
}

/// Regressions first, otherwise as they are.
fn sorted(comparison: &Comparison) -> Vec<&crate::compare::RowChange> {
    let mut rows: Vec<_> = comparison.rows.iter().collect();
    rows.sort_by_key(|row| row.change != Change::Slower);
    rows
}

fn marks(why: &[String], footnotes: &mut Footnotes) -> String {
    why.iter().map(|why| format!(" <sup>{}</sup>", footnotes.number(why))).collect()
}
