//! `cargo xtask lab` as a separate program: in a guest, on a board, and without its requirements.

mod board;
mod guest;
mod lacks;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use punctual_process::child::{BoundedCommand, TEST_LIMIT};

/// Returns the lab's command with these words.
fn lab(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lab"));
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns the lab's directory.
fn cache() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the lab lies in the workspace");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(workspace.join("target"), PathBuf::from);
    target.join("lab")
}

/// The end of a run.
struct Ran {
    output: Output,
    stdout: String,
    stderr: String,
}

impl Ran {
    fn of(command: &mut Command) -> Self {
        Self::new(command.output_within(TEST_LIMIT).expect("the binary was built"))
    }

    fn new(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { stdout: text(&output.stdout), stderr: text(&output.stderr), output }
    }

    /// Requires an exit status, and parts of standard error.
    #[track_caller]
    fn ends_with(&self, status: i32, printed: &[&str]) {
        assert_eq!(self.output.status.code(), Some(status), "{}{}", self.stdout, self.stderr);
        for part in printed {
            assert!(self.stderr.contains(part), "no `{part}` in:\n{}", self.stderr);
        }
    }
}
