//! Descriptions in the interface language of ROS 2, which viewers of recordings read (encoding `ros2msg`).

use std::fmt::Write;

use super::{Description, Kind, Scalar};

/// The definition of a message, followed by those of the messages in it.
pub(crate) fn ros2msg(description: &'static Description) -> String {
    let mut all = vec![description];
    let mut text = String::new();
    let mut next = 0;
    while let Some(&message) = all.get(next) {
        if next > 0 {
            // The separator is 80 characters long, and names go without their `msg`.
            let name = message.name().replacen("/msg/", "/", 1);
            let _ = write!(text, "{}\nMSG: {name}\n", "=".repeat(80));
        }
        for field in message.fields() {
            let _ = write!(text, "{} {}", type_name(field.kind()), field.name());
            if let Some(unit) = field.unit() {
                let _ = write!(text, "  # {unit}");
            }
            text.push('\n');
            if let Some(inner) = inner(field.kind())
                && !all.contains(&inner)
            {
                all.push(inner);
            }
        }
        next += 1;
    }
    text
}

/// The message that a value is or is made of.
pub(crate) fn inner(kind: Kind) -> Option<&'static Description> {
    match kind {
        Kind::Scalar(_) => None,
        Kind::Array(element, _) => inner(*element),
        Kind::Message(description) => Some(description),
    }
}

/// How the type is written there.
pub(crate) fn type_name(kind: Kind) -> String {
    match kind {
        Kind::Scalar(scalar) => scalar.name().into(),
        Kind::Array(element, length) => format!("{}[{length}]", type_name(*element)),
        Kind::Message(description) => description.name().replacen("/msg/", "/", 1),
    }
}

impl Scalar {
    const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::F32 => "float32",
            Self::F64 => "float64",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Message;
    use super::super::example::State;
    use super::*;

    #[test]
    fn defines_each_message_once() {
        let separator = "=".repeat(80);
        let expected = format!(
            "geometry_msgs/Vector3 position\ngeometry_msgs/Vector3[2] last\nfloat32[2] currents  # A\n\
             {separator}\nMSG: geometry_msgs/Vector3\nfloat64 x\nfloat64 y  # rad\n"
        );
        assert_eq!(ros2msg(State::DESCRIPTION), expected);
        assert_eq!(State::DESCRIPTION.name(), "punctual_bridge/msg/State");
    }
}
