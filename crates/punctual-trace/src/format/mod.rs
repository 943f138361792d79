//! The formats of traces: what readers and writers have in common.
//!
//! [`fields`] describes the records of events, [`page`] decodes pages of the ring buffer and
//! [`page_writer`] encodes them. [`read`](crate::read) and [`write`](mod@crate::write) use this
//! module, and neither uses the other.

mod bytes;
pub(crate) mod dat;
pub mod fields;
pub mod page;
pub mod page_writer;
pub(crate) mod recipe;

pub use bytes::{Bytes, Order, Range};
pub(crate) use bytes::{MAX_IN_MEMORY, Store};

/// Marks of messages between two machines, in the recordings of both:
///
/// | bytes | sent | received |
/// |---|---|---|
/// | 0 to 3 | `0x504a_0010` | `0x504a_0011` |
/// | 4 to 11 | its number | its number |
pub(crate) mod exchange {
    const SENT: u32 = 0x504a_0010;
    const RECEIVED: u32 = 0x504a_0011;

    /// A message in a recording.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Message {
        /// Message number.
        pub number: u64,
        /// Time on the recording's clock.
        pub time: u64,
        /// True for the sender's mark, false for the receiver's.
        pub sent: bool,
    }

    /// Returns the bytes that mark a message.
    #[must_use]
    pub fn mark(number: u64, sent: bool) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&if sent { SENT } else { RECEIVED }.to_ne_bytes());
        bytes[4..].copy_from_slice(&number.to_ne_bytes());
        bytes
    }

    /// Parses a mark of type `id`: its number, and whether the message was sent.
    pub(crate) fn read(id: u32, content: &[u8]) -> Option<(u64, bool)> {
        let number = u64::from_ne_bytes(*content.first_chunk()?);
        match id {
            SENT => Some((number, true)),
            RECEIVED => Some((number, false)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    /// Returns the sources in a directory, without their tests.
    fn sources(directory: &Path, found: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(directory).expect("the sources can be listed") {
            let path = entry.expect("the sources can be listed").path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && !path.ends_with("tests.rs")
            {
                let text = fs::read_to_string(&path).expect("the sources can be read");
                let code = text.lines().take_while(|line| *line != "#[cfg(test)]");
                let code = code.filter(|line| !line.trim_start().starts_with("//"));
                found.push((path.display().to_string(), code.collect::<Vec<_>>().join("\n")));
            }
        }
    }

    #[test]
    fn readers_and_writers_do_not_use_each_other() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        for (directory, others) in [
            ("read", &["crate::write"][..]),
            ("write", &["crate::read", "crate::machines"]),
            ("format", &["crate::read", "crate::write", "crate::machines"]),
        ] {
            let mut files = Vec::new();
            sources(&source.join(directory), &mut files);
            assert!(files.len() > 4, "{directory}");
            for (file, code) in files {
                assert!(!others.iter().any(|other| code.contains(other)), "{file} uses one of {others:?}");
            }
        }
    }
}
