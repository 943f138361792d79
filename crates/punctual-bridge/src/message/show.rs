//! Messages as text, and the names of their numbers for tables.

use std::fmt::Write;

use super::cdr::Bytes;
use super::{Description, Kind};

/// Returns the values of a message in CDR, in the notation of `ros2 topic pub`: `{x: 0.5, y:
/// -0.25}`. `None` if the bytes are those of another message.
pub fn show(description: &Description, payload: &[u8]) -> Option<String> {
    let mut text = String::new();
    fields(description, &mut Bytes::of(payload)?, &mut text)?;
    Some(text)
}

fn fields(description: &Description, bytes: &mut Bytes<'_>, to: &mut String) -> Option<()> {
    to.push('{');
    for (index, field) in description.fields().iter().enumerate() {
        let separator = if index > 0 { ", " } else { "" };
        let _ = write!(to, "{separator}{}: ", field.name());
        value(field.kind(), bytes, to)?;
    }
    to.push('}');
    Some(())
}

fn value(kind: Kind, bytes: &mut Bytes<'_>, to: &mut String) -> Option<()> {
    match kind {
        Kind::Scalar(scalar) => {
            let _ = write!(to, "{}", scalar.read(bytes)?);
        }
        Kind::Text(_) => {
            let _ = write!(to, "{:?}", bytes.text()?);
        }
        Kind::Message(description) => fields(description, bytes, to)?,
        Kind::Array(element, length) => elements(*element, length, bytes, to)?,
        Kind::Sequence(element, _) => elements(*element, bytes.length()?, bytes, to)?,
    }
    Some(())
}

fn elements(kind: Kind, count: usize, bytes: &mut Bytes<'_>, to: &mut String) -> Option<()> {
    to.push('[');
    let mut is_first = true;
    bytes.repeat(count, |bytes| {
        if !std::mem::take(&mut is_first) {
            to.push_str(", ");
        }
        value(kind, bytes, to)
    })?;
    to.push(']');
    Some(())
}

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
    use super::super::example::State;
    use super::super::{Encoder, Message, Text};
    use super::*;
    use crate::messages::{Header, JointState, Time};

    #[test]
    fn shows_every_kind_of_value() {
        let header = Header { stamp: Time { sec: 1, nanosec: 2 }, frame_id: Text::new("base").unwrap() };
        let joints = JointState::<2> {
            header,
            name: [Text::new("pan").unwrap()].into(),
            position: [0.5, -0.25].into(),
            ..JointState::default()
        };
        let bytes = Encoder::default().encode(0, &joints).to_vec();
        let expected = "{header: {stamp: {sec: 1, nanosec: 2}, frame_id: \"base\"}, name: [\"pan\"], \
                        position: [0.5, -0.25], velocity: [], effort: []}";
        assert_eq!(show(JointState::<2>::DESCRIPTION, &bytes).unwrap(), expected);
        for length in 0..bytes.len() {
            assert_eq!(show(JointState::<2>::DESCRIPTION, &bytes[..length]), None, "{length}");
        }
        assert_eq!(show(Time::DESCRIPTION, &[0, 1, 0, 0, 255, 255]), None);
    }

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
