//! The formats of traces: what readers and writers have in common.
//!
//! [`fields`] describes the records of events, [`page`] decodes pages of the ring buffer and
//! [`page_writer`] encodes them. [`read`](crate::read) and [`write`](mod@crate::write) use this
//! module, and neither uses the other.

mod bytes;
pub(crate) mod content;
pub(crate) mod dat;
pub(crate) mod exchange;
pub mod fields;
pub mod page;
pub mod page_writer;
pub(crate) mod recipe;

pub use bytes::{Bytes, Order, Range};

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
