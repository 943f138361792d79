//! The source of facts: the `/proc` and `/sys` of this machine, of a directory, or of a recording.
//!
//! A recording is a text file in the format of `tail -n +1 FILE..`, so that it can be read, created
//! and edited by hand:
//!
//! ```
//! use punctual_isolate::tree::Tree;
//!
//! let tree = Tree::parse("==> /proc/sys/vm/swappiness <==\n60\n\n==> /sys/kernel/debug <== refused\n");
//! assert_eq!(tree.text("/proc/sys/vm/swappiness").as_deref(), Some("60"));
//! assert_eq!(tree.text("/proc/cmdline"), None);
//! ```
//!
//! For any file content, reading neither panics nor hangs, and uses a bounded amount of memory.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// An upper bound on the size of the kernel files read here, such as `/proc/interrupts` with a
/// thousand CPUs.
const MAX_FILE: u64 = 8 << 20;
/// An upper bound on the relevant entries of a directory.
const MAX_ENTRIES: usize = 1 << 17;

/// The reason a file was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// The file does not exist: the kernel lacks the feature.
    Absent,
    /// The file exists, or may exist, but this process must not read it.
    Refused,
}

/// Files of the kernel, by their absolute paths.
#[derive(Debug)]
pub struct Tree {
    source: Source,
    /// The files read so far, if the tree is being recorded.
    record: Option<RefCell<BTreeMap<String, Result<String, Lack>>>>,
}

#[derive(Debug)]
enum Source {
    Directory(PathBuf),
    Recording(BTreeMap<String, Result<String, Lack>>),
}

impl Tree {
    /// Reads this machine.
    #[must_use]
    pub fn system() -> Self {
        Self::directory("/")
    }

    /// Reads the tree in which `root` stands for `/`.
    pub fn directory(root: impl Into<PathBuf>) -> Self {
        Self { source: Source::Directory(root.into()), record: None }
    }

    /// Starts recording: [`recording`](Self::recording) will contain everything read from now on.
    #[must_use]
    pub fn recorded(mut self) -> Self {
        self.record = Some(RefCell::default());
        self
    }

    /// Parses a recording. Text before the first file is a comment.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut files = BTreeMap::new();
        let mut current: Option<(String, String)> = None;
        let finish = |files: &mut BTreeMap<_, _>, current: Option<(String, String)>| {
            if let Some((path, text)) = current {
                files.insert(path, Ok(text.trim_end_matches('\n').to_owned()));
            }
        };
        for line in text.lines() {
            let header = line.strip_prefix("==> ").and_then(|rest| rest.split_once(" <=="));
            match (header, &mut current) {
                (Some((path, rest)), _) => {
                    finish(&mut files, current.take());
                    match rest.trim() {
                        "" => current = Some((path.to_owned(), String::new())),
                        _ => drop(files.insert(path.to_owned(), Err(Lack::Refused))),
                    }
                }
                (None, Some((_, text))) => {
                    text.push_str(&unescaped(line));
                    text.push('\n');
                }
                (None, None) => {}
            }
        }
        finish(&mut files, current);
        Self { source: Source::Recording(files), record: None }
    }

    /// Returns whether this is a recording without files.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(&self.source, Source::Recording(files) if files.is_empty())
    }

    /// Returns a recorded tree with the text of one file replaced.
    #[must_use]
    pub fn with(mut self, path: &str, text: &str) -> Self {
        if let Source::Recording(files) = &mut self.source {
            files.insert(path.to_owned(), Ok(text.to_owned()));
        }
        self
    }

    /// Returns a recorded tree without one file.
    #[must_use]
    pub fn without(mut self, path: &str) -> Self {
        if let Source::Recording(files) = &mut self.source {
            files.remove(path);
        }
        self
    }

    /// Returns `true` for a running system, `false` for a recording.
    #[must_use]
    pub fn is_live(&self) -> bool {
        matches!(&self.source, Source::Directory(root) if root == Path::new("/"))
    }

    /// Returns everything read so far, if it is [recorded](Self::recorded).
    #[must_use]
    pub fn recording(&self) -> String {
        let mut out = String::new();
        for (path, text) in self.record.iter().flat_map(|record| record.borrow().clone()) {
            let path: String = path.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            match text {
                Ok(text) => {
                    let _ = writeln!(out, "==> {path} <==");
                    text.split('\n').for_each(|line| out.extend([&*escaped(line), "\n"]));
                    out.push('\n');
                }
                Err(Lack::Refused) => {
                    let _ = writeln!(out, "==> {path} <== refused\n");
                }
                Err(Lack::Absent) => {}
            }
        }
        out
    }

    /// Returns the text of a file, without surrounding white space.
    ///
    /// # Errors
    /// The file does not exist, or must not be read.
    pub fn read(&self, path: &str) -> Result<String, Lack> {
        let text = self.fetch(path).map(|text| text.trim().to_owned());
        self.note(path, || text.clone());
        text
    }

    /// Returns the text of a file, without surrounding white space, if it can be read.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<String> {
        self.read(path).ok()
    }

    /// Like [`text`](Self::text), but not recorded.
    pub(crate) fn glance(&self, path: &str) -> Option<String> {
        self.fetch(path).ok()
    }

    /// Returns the number in a file.
    #[must_use]
    pub fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// Returns the first line of the form `KEY: value` or `KEY=value`, without its key; `Ok(None)`
    /// if there is no such line.
    ///
    /// # Errors
    /// The file does not exist, or must not be read.
    pub fn field(&self, path: &str, key: &str) -> Result<Option<String>, Lack> {
        let text = match self.fetch(path) {
            Ok(text) => text,
            Err(lack) => {
                self.note(path, || Err(lack));
                return Err(lack);
            }
        };
        let Some(line) = text.lines().find(|line| value(line, key).is_some()) else { return Ok(None) };
        self.note_line(path, line);
        Ok(value(line, key).map(str::to_owned))
    }

    /// Returns the entries of a directory, numbers in numeric order. Empty if it cannot be read.
    #[must_use]
    pub fn list(&self, path: &str) -> Vec<String> {
        let mut names: Vec<String> = match &self.source {
            Source::Directory(root) => {
                let entries = fs::read_dir(root.join(path.trim_start_matches('/')));
                let entries = entries.into_iter().flatten().flatten().take(MAX_ENTRIES);
                entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
            }
            Source::Recording(files) => {
                let prefix = format!("{}/", path.trim_end_matches('/'));
                let inside = files.range(prefix.clone()..).map_while(|(path, _)| path.strip_prefix(&prefix));
                let names: BTreeSet<&str> =
                    inside.map(|path| path.split('/').next().unwrap_or(path)).collect();
                names.into_iter().map(str::to_owned).collect()
            }
        };
        names.sort_by_key(|name| {
            let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
            (name.len() - digits.len(), digits.parse::<u64>().unwrap_or(u64::MAX), name.clone())
        });
        names
    }

    /// Returns the numeric entries of a directory, in order.
    #[must_use]
    pub fn numbers(&self, path: &str) -> Vec<u32> {
        self.list(path).iter().filter_map(|name| name.parse().ok()).collect()
    }

    /// Adds a measured value to a recording.
    pub(crate) fn keep(&self, path: &str, text: &str) {
        self.note(path, || Ok(text.to_owned()));
    }

    /// Returns the bytes of a binary file.
    pub(crate) fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        match &self.source {
            Source::Directory(root) => load(&root.join(path.trim_start_matches('/'))).ok(),
            Source::Recording(_) => None,
        }
    }

    fn fetch(&self, path: &str) -> Result<String, Lack> {
        match &self.source {
            Source::Directory(root) => match load(&root.join(path.trim_start_matches('/'))) {
                Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(Lack::Refused),
                Err(_) => Err(Lack::Absent),
            },
            Source::Recording(files) => files.get(path).cloned().unwrap_or(Err(Lack::Absent)),
        }
    }

    fn note(&self, path: &str, text: impl FnOnce() -> Result<String, Lack>) {
        if let Some(record) = &self.record {
            record.borrow_mut().insert(path.to_owned(), text());
        }
    }

    /// Records one line of a file of which only some are relevant.
    fn note_line(&self, path: &str, line: &str) {
        if let Some(record) = &self.record {
            let mut record = record.borrow_mut();
            let text = record.entry(path.to_owned()).or_insert_with(|| Ok(String::new()));
            match text {
                Ok(text) if text.lines().any(|known| known == line) => {}
                Ok(text) if text.is_empty() => line.clone_into(text),
                Ok(text) => *text = format!("{text}\n{line}"),
                Err(_) => *text = Ok(line.to_owned()),
            }
        }
    }
}

/// Reads a file, without ever waiting for another kind of file in its place, such as a pipe.
fn load(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the value of a line of the form `KEY: value` or `KEY=value`.
fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(key)?.trim_start();
    rest.strip_prefix([':', '=']).map(str::trim)
}

/// Escapes a line of a recording: it cannot be taken for the head of a file and has no control
/// characters.
fn escaped(line: &str) -> String {
    let mut out = String::new();
    if line.starts_with("==>") {
        out.push('\\');
    }
    for c in line.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\t' => out.push('\t'),
            c if punctual_report::escape::Printable(c.encode_utf8(&mut [0; 4])).to_string()
                != c.to_string() =>
            {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

fn unescaped(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let character = after.strip_prefix("u{").and_then(|hex| {
            let (digits, behind) = hex.split_once('}')?;
            Some((char::from_u32(u32::from_str_radix(digits, 16).ok()?)?, behind))
        });
        match (character, after.strip_prefix('\\')) {
            (Some((c, behind)), _) => {
                out.push(c);
                rest = behind;
            }
            (None, Some(behind)) => {
                out.push('\\');
                rest = behind;
            }
            (None, None) => rest = after,
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_recordings_of_arbitrary_files() {
        let hostile = "(a\u{1b}[2J\\) S\n==> /etc/passwd <==\n\\n\u{202e}x";
        let tree =
            Tree::parse("a comment\n").with("/proc/1/stat", hostile).with("/proc/2", "1\n2").recorded();
        assert_eq!((tree.text("/proc/1/stat").as_deref(), tree.text("/nothing")), (Some(hostile), None));
        assert_eq!(tree.field("/proc/2", "x"), Ok(None));
        let recording = tree.recording();
        assert!(recording.chars().all(|c| c == '\n' || !c.is_control()), "{recording}");
        let again = Tree::parse(&recording);
        assert_eq!(again.text("/proc/1/stat").as_deref(), Some(hostile));
        assert_eq!(again.text("/etc/passwd"), None);
    }

    #[test]
    fn keeps_only_requested_lines() {
        let tree = Tree::parse("==> /proc/self/status <==\nName:\tx\nCapEff:\t01\nA=2\n").recorded();
        assert_eq!(tree.field("/proc/self/status", "CapEff"), Ok(Some("01".into())));
        assert_eq!(tree.field("/proc/self/status", "A"), Ok(Some("2".into())));
        assert_eq!(tree.field("/proc/self/status", "Cap"), Ok(None));
        assert_eq!(tree.recording(), "==> /proc/self/status <==\nCapEff:\t01\nA=2\n\n");
    }

    #[test]
    fn lists_directories_with_numbers_in_order() {
        let tree = Tree::parse("==> /a/cpu10/x <==\n==> /a/cpu9/x <==\n==> /a/cpuidle/y <==\n==> /ab <==\n");
        assert_eq!(tree.list("/a"), ["cpu9", "cpu10", "cpuidle"]);
        assert_eq!(tree.list("/b"), Vec::<String>::new());
    }

    #[test]
    fn distinguishes_refused_from_missing_files() {
        let tree = Tree::parse("==> /a <== refused\n==> /b <==\n");
        assert_eq!([tree.read("/a"), tree.read("/c")], [Err(Lack::Refused), Err(Lack::Absent)]);
        assert_eq!(tree.read("/b").as_deref(), Ok(""));
    }

    #[test]
    fn does_not_block_on_pipe() {
        let root = tempfile::tempdir().unwrap();
        let pipe = root.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        assert_eq!(Tree::directory(root.path()).text("/pipe").unwrap_or_default(), "");
    }
}
