//! Locating the first difference of two messages.

use std::fmt;

use crate::message::Description;
use crate::message::cdr::{Cell, Number, cells};
use crate::message::show::columns;

/// A message and its time, in ns since 1970.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timed<'a> {
    pub(super) time_ns: u64,
    pub(super) payload: &'a [u8],
}

/// Returns the first difference, with the name of the field or else the byte offset and both
/// values. A stamp that is the time of its own message, in both, is equal.
pub(super) fn first(
    description: &'static Description,
    recorded: Timed<'_>,
    replayed: Timed<'_>,
) -> Option<String> {
    if recorded.payload == replayed.payload {
        return None;
    }
    let offset = || {
        let pairs = recorded.payload.iter().zip(replayed.payload);
        pairs.take_while(|(recorded, replayed)| recorded == replayed).count()
    };
    let names = columns(description);
    let values = [recorded, replayed].map(|message| {
        let mut values = vec![];
        cells(description, message.payload, &mut |cell| values.push(Value::of(&cell)));
        values
    });
    let [before, now] = &values;
    let mut is_only_stamps = false;
    let mut index = 0;
    while index < names.len() {
        if is_own_stamp(&names, before, index, recorded.time_ns)
            && is_own_stamp(&names, now, index, replayed.time_ns)
        {
            (is_only_stamps, index) = (true, index + 2);
            continue;
        }
        if let (Some(before), Some(now)) = (before.get(index), now.get(index))
            && before != now
        {
            let (name, offset) = (&names[index], offset());
            return Some(format!("{name}: recorded {before}, replayed {now} (from byte {offset})"));
        }
        index += 1;
    }
    let is_decoded = values.iter().all(|values| values.len() == names.len());
    if is_only_stamps && is_decoded {
        return None;
    }
    let offset = offset();
    let byte = |payload: &[u8]| payload.get(offset).map_or("nothing".into(), |byte| format!("0x{byte:02x}"));
    let (before, now) = (byte(recorded.payload), byte(replayed.payload));
    Some(format!("byte {offset}: recorded {before}, replayed {now}"))
}

/// Returns `true` if the columns from `index` are a time since 1970, and it is that of the message.
fn is_own_stamp(names: &[String], values: &[Value], index: usize, time_ns: u64) -> bool {
    let is_time = names[index].ends_with("sec [s]")
        && names.get(index + 1).is_some_and(|next| next.ends_with("nanosec [ns]"));
    let seconds = Value::Number(Number::Signed((time_ns / 1_000_000_000) as i64));
    let nanos = Value::Number(Number::Unsigned(time_ns % 1_000_000_000));
    is_time && values.get(index) == Some(&seconds) && values.get(index + 1) == Some(&nanos)
}

/// A value, whose bits are compared.
#[derive(Debug)]
enum Value {
    Number(Number),
    Text(String),
    Nothing,
}

impl Value {
    fn of(cell: &Cell<'_>) -> Self {
        match cell {
            Cell::Number(number) => Self::Number(*number),
            Cell::Text(text) => Self::Text((*text).to_owned()),
            Cell::Nothing => Self::Nothing,
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(Number::Double(a)), Self::Number(Number::Double(b))) => a.to_bits() == b.to_bits(),
            (Self::Number(Number::Single(a)), Self::Number(Number::Single(b))) => a.to_bits() == b.to_bits(),
            (Self::Number(a), Self::Number(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Nothing, Self::Nothing) => true,
            _ => false,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Nothing => f.write_str("nothing"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;
    use crate::message::{Encoder, Text};
    use crate::messages::{Header, JointState, Time};

    /// Returns the first difference of two messages released at 7.5 s and 8.5 s.
    fn difference<T: Message>(recorded: &T, replayed: &T) -> Option<String> {
        let [before, now] = [7_500_000_000, 8_500_000_000];
        let bytes = [(before, recorded), (now, replayed)]
            .map(|(time_ns, message)| Encoder::default().encode(time_ns, message).to_vec());
        let timed = |time_ns, payload| Timed { time_ns, payload };
        first(T::DESCRIPTION, timed(before, &bytes[0]), timed(now, &bytes[1]))
    }

    #[test]
    fn names_first_differing_field_and_both_values() {
        let joints = JointState::<4> {
            name: [Text::new("pan").unwrap()].into(),
            position: [0.5, -0.25].into(),
            ..JointState::default()
        };
        assert_eq!(difference(&joints, &joints), None, "both stamps are those of the release");
        let moved = JointState { position: [0.5, -0.5].into(), ..joints };
        let found = difference(&joints, &moved).unwrap();
        assert!(found.starts_with("position[1]: recorded -0.25, replayed -0.5 (from byte "), "{found}");
        let longer = JointState { position: [0.5, -0.25, 1.0].into(), ..joints };
        let found = difference(&joints, &longer).unwrap();
        assert!(found.starts_with("position.length: recorded 2, replayed 3"), "{found}");
        let renamed = JointState { name: [Text::new("tilt").unwrap()].into(), ..joints };
        let found = difference(&joints, &renamed).unwrap();
        assert!(found.starts_with("name[0]: recorded \"pan\", replayed \"tilt\""), "{found}");
        let stamped = Header { stamp: Time { sec: 1, nanosec: 2 }, ..joints.header };
        let found = difference(&joints, &JointState { header: stamped, ..joints }).unwrap();
        assert!(found.starts_with("header.stamp.sec [s]: recorded 7, replayed 1"), "{found}");
    }

    #[test]
    fn distinguishes_bits_of_equal_numbers() {
        #[derive(Clone, Copy, Message)]
        struct Value {
            value: f64,
        }
        let found = difference(&Value { value: 0.0 }, &Value { value: -0.0 }).unwrap();
        assert_eq!(found, "value: recorded 0, replayed -0 (from byte 11)");
        let nan = Value { value: f64::NAN };
        assert_eq!(difference(&nan, &nan), None);
    }

    #[test]
    fn gives_offset_if_no_field_differs() {
        let timed = |payload| Timed { time_ns: 0, payload };
        let found = first(Time::DESCRIPTION, timed(&[0, 1, 0, 0]), timed(&[0, 1, 0])).unwrap();
        assert_eq!(found, "byte 3: recorded 0x00, replayed nothing");
    }
}
