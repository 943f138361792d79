//! Numbers in either byte order, to build small recordings.

pub(crate) struct Writer {
    pub(crate) big: bool,
    pub(crate) bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(big: bool) -> Self {
        Self { big, bytes: Vec::new() }
    }

    pub(crate) fn number(&mut self, value: u64, size: usize) -> &mut Self {
        match self.big {
            true => self.bytes.extend(&value.to_be_bytes()[8 - size..]),
            false => self.bytes.extend(&value.to_le_bytes()[..size]),
        }
        self
    }
}
