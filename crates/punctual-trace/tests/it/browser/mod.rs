//! Opens a page in a headless Chromium and returns the result.
#![allow(unreachable_pub)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use test_skip::{Need, skip};

use punctual_process::child::{BoundedCommand, TEST_LIMIT};

/// Names of the program in different distributions.
const PROGRAMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

pub struct Browser {
    program: &'static str,
    place: PathBuf,
}

/// A page after its scripts have run.
pub struct Opened {
    pub document: String,
    /// Its console output and its errors.
    pub console: Vec<String>,
}

impl Browser {
    /// Returns `None` if none exists on this machine, and prints a notice.
    pub fn find(name: &str) -> Option<Self> {
        let answers = |program: &&str| {
            let command =
                Command::new(program).arg("--version").stdin(Stdio::null()).output_within(TEST_LIMIT);
            command.is_ok_and(|output| output.status.success())
        };
        let Some(program) = PROGRAMS.into_iter().find(answers) else {
            skip(Need::Tool("chromium"), "pages in a browser");
            return None;
        };
        let place = std::env::temp_dir().join(format!("punctual-trace-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(&place).expect("there is room for a directory");
        Some(Self { program, place })
    }

    fn file(&self) -> PathBuf {
        self.place.join("page.html")
    }

    /// Opens the page at a fragment such as `#t0-j1`, or at none.
    pub fn open(&self, page: &str, fragment: &str) -> Opened {
        fs::write(self.file(), page).expect("there is room for the page");
        let address = format!("file://{}{fragment}", self.file().display());
        let output = self
            .command()
            .arg("--dump-dom")
            .arg(address)
            .output_within(TEST_LIMIT)
            .expect("it has just said its version");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{} failed: {said}", self.program);
        let console = said.lines().filter(|line| line.contains(":CONSOLE")).map(str::to_owned).collect();
        Opened { document: String::from_utf8_lossy(&output.stdout).into_owned(), console }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        command
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--enable-logging=stderr", "--virtual-time-budget=2000"])
            .arg(format!("--user-data-dir={}", self.place.join("profile").display()))
            .env("HOME", &self.place)
            .stdin(Stdio::null());
        command
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(Path::new(&self.place));
    }
}
