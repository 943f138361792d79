//! The profile of a run: exact, in virtual time, and without silent omissions.

mod bounds;
mod ends;
mod nested;
mod parallel;
mod spawns;

use std::fs;
use std::path::{Path, PathBuf};

/// A file for this test, removed on drop.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("punctual-profile-{}-{name}", std::process::id())))
    }

    fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the contents, without the machine.
    fn text(&self) -> String {
        let text = fs::read_to_string(&self.0).expect("the profile was written");
        text.lines().filter(|line| !line.contains("\"machine\"")).map(|line| format!("{line}\n")).collect()
    }

    /// Returns the part on a task.
    fn task(&self, name: &str) -> String {
        let text = self.text();
        let start = text.find(&format!("\"name\": \"{name}\"")).expect("every task is there");
        let end = text[start..].find("\n    }").expect("it ends");
        // One or several values per line make no difference.
        text[start..start + end].split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Checks that each of `parts` is in `text`.
#[track_caller]
fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part}\nis not in\n{text}");
    }
}
