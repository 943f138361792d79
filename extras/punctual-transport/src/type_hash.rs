//! Type hashes of ROS 2 (REP-2016), by which nodes check that a name means the same type to both.

use std::collections::BTreeMap;
use std::fmt::Write;

use punctual_bridge::message::{Description, Kind, ParseError, Scalar, parse};
use punctual_bridge::transport::TopicInfo;
use sha2::{Digest, Sha256};

/// Codes of `type_description_interfaces/msg/FieldType`.
mod field_type {
    pub(super) const NESTED_TYPE: u8 = 1;
    pub(super) const UINT8: u8 = 3;
    pub(super) const STRING: u8 = 17;
    pub(super) const ARRAY_OFFSET: u8 = 48;
    pub(super) const UNBOUNDED_SEQUENCE_OFFSET: u8 = 144;
}

/// Returns the hash of a topic's type, such as `RIHS01_` and 64 hexadecimal digits.
///
/// # Errors
/// The definition is malformed.
pub fn type_hash(topic: &TopicInfo) -> Result<String, ParseError> {
    Ok(message_hash(parse(&topic.type_name, &topic.definition)?))
}

/// Returns the hash of a type of messages; see [`type_hash`].
pub fn message_hash(message: &'static Description) -> String {
    let mut nested = BTreeMap::new();
    collect(message, &mut nested);
    let nested: Vec<String> = nested.values().map(|message| json(message)).collect();
    let text = format!(
        r#"{{"type_description": {}, "referenced_type_descriptions": [{}]}}"#,
        json(message),
        nested.join(", ")
    );
    let mut hash = "RIHS01_".to_owned();
    for byte in Sha256::digest(text) {
        let _ = write!(hash, "{byte:02x}");
    }
    hash
}

/// Adds the messages that a message contains, at any depth.
fn collect(message: &'static Description, nested: &mut BTreeMap<&'static str, &'static Description>) {
    for field in message.fields() {
        if let Some(inner) = message_in(field.kind())
            && nested.insert(inner.name(), inner).is_none()
        {
            collect(inner, nested);
        }
    }
}

fn message_in(kind: Kind) -> Option<&'static Description> {
    match kind {
        Kind::Message(inner) => Some(inner),
        Kind::Array(element, _) | Kind::Sequence(element, _) => message_in(*element),
        _ => None,
    }
}

/// Returns the description of one message as `json.dumps` of Python writes it.
fn json(message: &Description) -> String {
    let mut fields: Vec<String> =
        message.fields().iter().map(|field| field_json(field.name(), field.kind())).collect();
    if fields.is_empty() {
        // The interface language of DDS has no empty structures.
        fields.push(field_json("structure_needs_at_least_one_member", Kind::Scalar(Scalar::U8)));
    }
    format!(r#"{{"type_name": "{}", "fields": [{}]}}"#, message.name(), fields.join(", "))
}

fn field_json(name: &str, kind: Kind) -> String {
    let (element, offset, capacity) = match kind {
        Kind::Array(element, length) => (*element, field_type::ARRAY_OFFSET, length),
        // The capacity is private to the app.
        Kind::Sequence(element, _) => (*element, field_type::UNBOUNDED_SEQUENCE_OFFSET, 0),
        kind => (kind, 0, 0),
    };
    let nested = message_in(element).map_or("", Description::name);
    let id = code(element) + offset;
    format!(
        r#"{{"name": "{name}", "type": {{"type_id": {id}, "capacity": {capacity}, "string_capacity": 0, "nested_type_name": "{nested}"}}}}"#
    )
}

fn code(element: Kind) -> u8 {
    match element {
        Kind::Scalar(Scalar::I8) => 2,
        Kind::Scalar(Scalar::U8) => field_type::UINT8,
        Kind::Scalar(Scalar::I16) => 4,
        Kind::Scalar(Scalar::U16) => 5,
        Kind::Scalar(Scalar::I32) => 6,
        Kind::Scalar(Scalar::U32) => 7,
        Kind::Scalar(Scalar::I64) => 8,
        Kind::Scalar(Scalar::U64) => 9,
        Kind::Scalar(Scalar::F32) => 10,
        Kind::Scalar(Scalar::F64) => 11,
        Kind::Scalar(Scalar::Bool) => 15,
        Kind::Scalar(Scalar::Byte) => 16,
        Kind::Text(_) => field_type::STRING,
        // Sequences of sequences do not exist.
        _ => field_type::NESTED_TYPE,
    }
}

#[cfg(test)]
mod tests {
    use punctual_bridge::Message;
    use punctual_bridge::messages::{Header, STANDARD};

    use super::*;

    #[test]
    fn hashes_are_those_of_ros() {
        let table = include_str!("../../support/standard_messages.txt");
        let rows = table.lines().filter(|line| !line.starts_with('#'));
        let rows: Vec<(&str, &str)> = rows
            .map(|row| {
                let mut columns = row.split(' ');
                (columns.next().unwrap(), columns.next().unwrap())
            })
            .collect();
        let hashes: Vec<String> = STANDARD.iter().map(|message| message_hash(message)).collect();
        let ours: Vec<(&str, &str)> =
            STANDARD.iter().zip(&hashes).map(|(message, hash)| (message.name(), hash.as_str())).collect();
        assert_eq!(ours, rows);
        let header = "RIHS01_f49fb3ae2cf070f793645ff749683ac6b06203e41c891e17701b1cb597ce6a01";
        assert_eq!(message_hash(Header::<8>::DESCRIPTION), header);
        const EMPTY: &Description = &Description::new("std_msgs/msg/Empty", &[]);
        let expected = "RIHS01_20b625256f32d5dbc0d04fee44f43c41e51c70d3502f84b4a08e7a9c26a96312";
        assert_eq!(message_hash(EMPTY), expected);
    }
}
