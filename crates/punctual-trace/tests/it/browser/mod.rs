//! Opens a page in a headless Chromium and returns the result.
#![allow(unreachable_pub)]

use std::fs;
use std::path::PathBuf;

use punctual_process::child::{BoundedCommand, TEST_LIMIT};
use test_skip::{Need, skip};
use xtask_support::browser;
use xtask_support::scratch::Scratch;

pub struct Browser {
    program: &'static str,
    place: Scratch,
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
        let Some(program) = browser::find() else {
            skip(Need::Tool("chromium"), "pages in a browser");
            return None;
        };
        let place = Scratch::new(&format!("browser-{name}")).expect("there is room for a directory");
        Some(Self { program, place })
    }

    fn file(&self) -> PathBuf {
        self.place.path().join("page.html")
    }

    /// Opens the page at a fragment such as `#t0-j1`, or at none.
    pub fn open(&self, page: &str, fragment: &str) -> Opened {
        fs::write(self.file(), page).expect("there is room for the page");
        let address = format!("file://{}{fragment}", self.file().display());
        let output = browser::command(self.program, self.place.path())
            .args(["--enable-logging=stderr", "--dump-dom"])
            .arg(address)
            .output_within(TEST_LIMIT)
            .expect("it has just said its version");
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{} failed: {printed}", self.program);
        let console = printed.lines().filter(|line| line.contains(":CONSOLE")).map(str::to_owned).collect();
        Opened { document: String::from_utf8_lossy(&output.stdout).into_owned(), console }
    }
}
