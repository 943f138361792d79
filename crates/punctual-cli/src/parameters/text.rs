//! Parameters as text.

use std::fmt::Write;

use punctual_bridge::parameters::{Change, Parameter, Remote};
use punctual_report::escape::Printable;
use punctual_report::table::{Cell, Column, Table};
use serde_json::Value;

/// Returns text from an app without terminal control characters.
fn plain(text: &str) -> String {
    Printable(text).to_string()
}

/// Lists the apps.
pub(super) fn apps(remotes: &[Remote]) -> String {
    let mut table = Table::new([Column::left("app"), Column::right("process")]);
    for remote in remotes {
        table.row([Cell::new(remote.app()), Cell::new(remote.process().to_string())]);
    }
    table.to_string()
}

/// Formats all properties of each parameter.
pub(super) fn table(parameters: &[Parameter]) -> String {
    let heads = ["value", "default", "min", "max"].map(Column::right);
    let mut columns = vec![Column::left("parameter")];
    columns.extend(heads);
    columns.extend(["unit", "type"].map(Column::left));
    let mut table = Table::new(columns);
    for Parameter { name, kind, unit, range, default, value, .. } in parameters {
        let known = |text: Option<&String>| text.map_or(Cell::none(), |text| Cell::new(plain(text)));
        let (min, max) = range.as_ref().map_or((None, None), |(min, max)| (Some(min), Some(max)));
        let cells = [Some(name), Some(value), Some(default), min, max, unit.as_ref(), Some(kind)];
        table.row(cells.map(known));
    }
    table.to_string()
}

/// Formats the values of some parameters, one per line.
pub(super) fn values(parameters: &[Parameter], names: &[String]) -> Result<String, String> {
    let mut text = String::new();
    for name in names {
        let found = parameters.iter().find(|parameter| parameter.name == *name).ok_or_else(|| {
            let existing: Vec<&str> = parameters.iter().map(|parameter| parameter.name.as_str()).collect();
            format!("there is no parameter {name}; there are {}", existing.join(", "))
        })?;
        let _ = writeln!(text, "{}", plain(&found.value));
    }
    Ok(text)
}

/// Formats a file with the current values.
pub(super) fn toml(remote: &Remote, parameters: &[Parameter]) -> String {
    let mut text = format!("# {remote}\n");
    for Parameter { name, unit, range, value, .. } in parameters {
        let _ = write!(text, "{} = {}", plain(name), plain(value));
        let unit = unit.as_ref().map_or(String::new(), |unit| format!(" {}", plain(unit)));
        let _ = match range {
            Some((min, max)) => writeln!(text, "  # {} to {}{unit}", plain(min), plain(max)),
            None => writeln!(text),
        };
    }
    text
}

/// Describes the changes.
pub(super) fn changes(changes: &[Change]) -> String {
    if changes.is_empty() {
        return "nothing changed: these are the current values\n".into();
    }
    let line = |Change { name, before, now, .. }: &Change| {
        format!("{}: {} -> {}\n", plain(name), plain(before), plain(now))
    };
    changes.iter().map(line).collect()
}

/// Returns a value in JSON: a number or a `bool`.
pub(super) fn number(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_numbers_in_json() {
        assert_eq!(number("1.5").as_f64(), Some(1.5));
        assert_eq!(number("1e-7").as_f64(), Some(1e-7));
        assert_eq!(number("18446744073709551615").as_u64(), Some(u64::MAX));
        assert_eq!(number("true").as_bool(), Some(true));
        assert_eq!(number("strange").as_str(), Some("strange"));
    }
}
