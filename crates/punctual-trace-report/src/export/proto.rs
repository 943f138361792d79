//! The part of protobuf's wire format that this writer needs.

/// A message under construction.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn new() -> Self {
        Self::default()
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn tag(&mut self, field: u32, wire: u32) {
        self.varint(u64::from(field << 3 | wire));
    }

    /// Appends an integer of any type that is neither fixed nor zigzag.
    pub(super) fn number(mut self, field: u32, number: u64) -> Self {
        self.tag(field, 0);
        self.varint(number);
        self
    }

    /// Appends a `fixed64`.
    pub(super) fn fixed(mut self, field: u32, number: u64) -> Self {
        self.tag(field, 1);
        self.0.extend(number.to_le_bytes());
        self
    }

    pub(super) fn text(self, field: u32, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    pub(super) fn message(self, field: u32, message: Self) -> Self {
        self.bytes(field, &message.0)
    }

    fn bytes(mut self, field: u32, bytes: &[u8]) -> Self {
        self.tag(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    pub(super) fn done(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_examples_of_protobuf_encoding_guide() {
        assert_eq!(Message::new().number(1, 150).done(), [0x08, 0x96, 0x01]);
        assert_eq!(Message::new().text(2, "testing").done(), b"\x12\x07testing");
        assert_eq!(Message::new().message(3, Message::new().number(1, 150)).done(), [0x1a, 3, 8, 0x96, 1]);
        assert_eq!(Message::new().fixed(1, 1).done(), [9, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Message::new().number(47, u64::MAX).done().len(), 12);
    }
}
