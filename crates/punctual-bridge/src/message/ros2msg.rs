//! Descriptions in the interface language of ROS: of ROS 2, which viewers of recordings read
//! (encoding `ros2msg`), and of ROS 1.

use std::fmt::Write;

use super::{Description, Kind, Scalar};

/// The interface language of ROS 1 or of ROS 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// That of ROS 1, in which times are a built-in type and headers have a sequence number.
    Ros1,
    /// That of ROS 2.
    Ros2,
}

impl Dialect {
    /// Returns the fields of a message whose fields differ from its description.
    fn own(self, description: &Description) -> Option<&'static str> {
        let is_other = self != Self::Ros2 && description.name() == crate::messages::HEADER;
        is_other.then_some("uint32 seq\ntime stamp\nstring frame_id\n")
    }

    /// Returns the built-in type that a message is in the language.
    fn built_in(self, description: &Description) -> Option<&'static str> {
        match description.name() {
            crate::messages::TIME if self != Self::Ros2 => Some("time"),
            crate::messages::DURATION if self != Self::Ros2 => Some("duration"),
            _ => None,
        }
    }

    /// Returns the message that a value is or consists of, unless it is a built-in type of the
    /// language.
    pub(crate) fn inner(self, kind: Kind) -> Option<&'static Description> {
        match kind {
            Kind::Scalar(_) | Kind::Text(_) => None,
            Kind::Array(element, _) | Kind::Sequence(element, _) => self.inner(*element),
            Kind::Message(description) if self.built_in(description).is_some() => None,
            Kind::Message(description) => Some(description),
        }
    }

    /// Returns the name of the type in the language. Capacities are private to this program, so
    /// they are omitted.
    pub(crate) fn type_name(self, kind: Kind) -> String {
        match kind {
            Kind::Scalar(scalar) => scalar.name().into(),
            Kind::Array(element, length) => format!("{}[{length}]", self.type_name(*element)),
            Kind::Sequence(element, _) => format!("{}[]", self.type_name(*element)),
            Kind::Text(_) => "string".into(),
            Kind::Message(description) => match self.inner(kind) {
                Some(_) => description.name().replacen("/msg/", "/", 1),
                None => self.built_in(description).unwrap_or_default().into(),
            },
        }
    }

    /// Returns the definition of a message, followed by those of the messages in it.
    pub fn definition(self, description: &'static Description) -> String {
        let mut all = vec![description];
        let mut text = String::new();
        let mut next = 0;
        while let Some(&message) = all.get(next) {
            if next > 0 {
                // The separator is 80 characters long, and names have no `msg` part.
                let name = message.name().replacen("/msg/", "/", 1);
                let _ = write!(text, "{}\nMSG: {name}\n", "=".repeat(80));
            }
            next += 1;
            if let Some(own) = self.own(message) {
                text.push_str(own);
                continue;
            }
            message.constants.iter().for_each(|constant| _ = writeln!(text, "{constant}"));
            for field in message.fields() {
                let _ = write!(text, "{} {}", self.type_name(field.kind()), field.name());
                if let Some(unit) = field.unit() {
                    let _ = write!(text, "  # {unit}");
                }
                text.push('\n');
                if let Some(inner) = self.inner(field.kind())
                    && !all.contains(&inner)
                {
                    all.push(inner);
                }
            }
        }
        text
    }

    /// Returns the text whose MD5 sum identifies a message of ROS 1: a line for each constant and
    /// each field, without comments, in which `sum` of a message stands for its type.
    pub fn lines(self, description: &Description, sum: &dyn Fn(&Description) -> String) -> String {
        if let Some(own) = self.own(description) {
            return own.trim_end().to_owned();
        }
        let constants = description.constants.iter().map(|constant| (*constant).to_owned());
        let fields = description.fields().iter().map(|field| {
            let of = self.inner(field.kind()).map_or_else(|| self.type_name(field.kind()), sum);
            format!("{of} {}", field.name())
        });
        constants.chain(fields).collect::<Vec<String>>().join("\n")
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
            Self::Byte => "byte",
        }
    }

    /// Returns the scalar with this name.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        const ALL: [Scalar; 12] = [
            Scalar::Bool,
            Scalar::I8,
            Scalar::I16,
            Scalar::I32,
            Scalar::I64,
            Scalar::U8,
            Scalar::U16,
            Scalar::U32,
            Scalar::U64,
            Scalar::F32,
            Scalar::F64,
            Scalar::Byte,
        ];
        ALL.into_iter().find(|scalar| scalar.name() == name)
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
        assert_eq!(Dialect::Ros2.definition(State::DESCRIPTION), expected);
        assert_eq!(State::DESCRIPTION.name(), "punctual_bridge/msg/State");
    }
}
