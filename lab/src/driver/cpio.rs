//! Writes an archive that the kernel unpacks as its first file system: cpio in the `newc` format,
//! uncompressed.
//!
//! Written here rather than by a tool, because it must be identical for the same files: times and
//! owners are 0, and the caller determines the order.

use std::collections::BTreeSet;

/// An archive under construction.
#[derive(Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    directories: BTreeSet<String>,
}

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_777;

impl Archive {
    /// Adds an executable file, at `path` from the root, with its parent directories.
    pub(crate) fn file(&mut self, path: &str, contents: &[u8]) {
        self.parents(path);
        self.entry(path, PROGRAM, contents);
    }

    /// Adds a symbolic link.
    pub(crate) fn link(&mut self, path: &str, target: &str) {
        self.parents(path);
        self.entry(path, LINK, target.as_bytes());
    }

    /// Returns the finished archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn parents(&mut self, path: &str) {
        for (slash, _) in path.match_indices('/') {
            if self.directories.insert(path[..slash].to_owned()) {
                self.entry(&path[..slash], DIRECTORY, &[]);
            }
        }
    }

    fn entry(&mut self, path: &str, mode: u32, contents: &[u8]) {
        self.entries += 1;
        let links = 1;
        let size =
            u32::try_from(contents.len()).expect("the format, and the guest, hold less than 4 GB a file");
        let name = path.len() as u32 + 1;
        // Inode, mode, user, group, links, time, size, device (4), length of the name, checksum.
        let fields = [self.entries, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(contents);
        self.pad();
    }

    /// Names and contents are padded to a multiple of four bytes.
    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names, modes and contents in an archive.
    fn read(mut bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut entries = Vec::new();
        loop {
            assert_eq!(&bytes[..6], b"070701");
            let field = |n: usize| {
                let digits = std::str::from_utf8(&bytes[6 + 8 * n..14 + 8 * n]).unwrap();
                u32::from_str_radix(digits, 16).unwrap()
            };
            let (mode, size, name) = (field(1), field(6) as usize, field(11) as usize);
            let path = String::from_utf8(bytes[110..110 + name - 1].to_vec()).unwrap();
            let from = (110 + name).next_multiple_of(4);
            if path == "TRAILER!!!" {
                return entries;
            }
            entries.push((path, mode, bytes[from..from + size].to_vec()));
            bytes = &bytes[(from + size).next_multiple_of(4)..];
        }
    }

    #[test]
    fn writes_each_directory_once_before_its_files() {
        let mut archive = Archive::default();
        archive.file("lab/bin/tool", b"12345");
        archive.file("lab/bin/other", b"");
        archive.link("bin/sh", "busybox");
        let entries = read(&archive.finish());
        let paths: Vec<&str> = entries.iter().map(|(path, ..)| path.as_str()).collect();
        assert_eq!(paths, ["lab", "lab/bin", "lab/bin/tool", "lab/bin/other", "bin", "bin/sh"]);
        assert_eq!(entries[0].1, DIRECTORY);
        assert_eq!(entries[2], ("lab/bin/tool".to_owned(), PROGRAM, b"12345".to_vec()));
        assert_eq!(entries[5], ("bin/sh".to_owned(), LINK, b"busybox".to_vec()));
    }

    #[test]
    fn packs_reproducibly() {
        let archive = || {
            let mut archive = Archive::default();
            archive.file("init", b"#!/bin/sh\n");
            archive.finish()
        };
        assert_eq!(archive(), archive());
    }
}
