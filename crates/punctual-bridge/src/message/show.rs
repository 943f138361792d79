//! Messages as text.

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
    for index in 0..count {
        if index > 0 {
            to.push_str(", ");
        }
        value(kind, bytes, to)?;
    }
    to.push(']');
    Some(())
}

#[cfg(test)]
mod tests {
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
}
