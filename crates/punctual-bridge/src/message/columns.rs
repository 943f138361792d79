//! Names of the numbers of a message, for tables.

use super::{Description, Kind};

/// Returns the name of each number of a message, with its unit: `axes[0].pan [rad]`.
pub(crate) fn columns(description: &'static Description) -> Vec<String> {
    let mut columns = Vec::new();
    of_message(description, "", &mut columns);
    columns
}

fn of_message(description: &'static Description, path: &str, columns: &mut Vec<String>) {
    for field in description.fields() {
        of_value(field.kind(), &format!("{path}{}", field.name()), field.unit(), columns);
    }
}

fn of_value(kind: Kind, path: &str, unit: Option<&str>, columns: &mut Vec<String>) {
    match kind {
        Kind::Scalar(_) => columns.push(unit.map_or_else(|| path.into(), |unit| format!("{path} [{unit}]"))),
        Kind::Array(element, length) => {
            (0..length).for_each(|index| of_value(*element, &format!("{path}[{index}]"), unit, columns));
        }
        Kind::Message(description) => of_message(description, &format!("{path}."), columns),
        Kind::Text(_) => columns.push(path.into()),
        Kind::Sequence(element, room) => {
            columns.push(format!("{path}.length"));
            (0..room).for_each(|index| of_value(*element, &format!("{path}[{index}]"), unit, columns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Message;
    use super::super::example::State;
    use super::*;

    #[test]
    fn names_each_number() {
        let expected = [
            "position.x",
            "position.y [rad]",
            "last[0].x",
            "last[0].y [rad]",
            "last[1].x",
            "last[1].y [rad]",
            "currents[0] [A]",
            "currents[1] [A]",
        ];
        assert_eq!(columns(State::DESCRIPTION), expected);
    }
}
