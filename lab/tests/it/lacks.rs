//! `cargo xtask lab` without a requirement of its first use: a network, disk space. It reports the
//! requirement and the remedy, and leaves nothing behind.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use punctual_process::child::{BoundedCommand, TEST_LIMIT};
use test_skip::{Need, is_installed, skip};

use crate::{Ran, cache};

const QEMU: &str = "qemu-system-x86_64";

/// An empty target directory, removed on drop.
struct Empty(PathBuf);

impl Empty {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("punctual-lab-{test}-{}", std::process::id()));
        fs::create_dir(&path).expect("the name is free");
        Self(path)
    }

    /// Returns the remaining directories of single runs in the lab's directory.
    fn left(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.0.join("lab")).into_iter().flatten().flatten();
        let work =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("work-"));
        entries.map(|entry| entry.path()).filter(work).collect()
    }
}

impl Drop for Empty {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn error_explains_need_for_network() {
    for tool in ["apt-get", QEMU] {
        if !is_installed(tool) {
            return skip(Need::Tool(tool), "a fetch without a network");
        }
    }
    let empty = Empty::new("offline");
    // An apt that knows no packages, and reaches no archive: the port is closed.
    let place = empty.0.display();
    fs::create_dir_all(empty.0.join("lists/partial")).unwrap();
    fs::write(empty.0.join("sources.list"), "deb [trusted=yes] http://127.0.0.1:9/debian bookworm main\n")
        .unwrap();
    let configuration = format!(
        "Dir::Etc::Main \"/dev/null\";\nDir::Etc::Parts \"/nonexistent\";\nDir::Etc::SourceParts \"/nonexistent\";\n\
         Dir::Etc::SourceList \"{place}/sources.list\";\nDir::State::lists \"{place}/lists\";\nAcquire::Retries \"0\";\n"
    );
    fs::write(empty.0.join("apt.conf"), configuration).unwrap();
    let mut lab = crate::lab(&["run", "true"]);
    lab.env("CARGO_TARGET_DIR", &empty.0).env("APT_CONFIG", empty.0.join("apt.conf"));
    Ran::of(&mut lab).ends_with(125, &["needs a network"]);
    assert!(empty.left().is_empty(), "{:?} is left", empty.left());
    assert!(!empty.0.join("lab/kernels/rt").exists(), "a kernel that is none");
}

#[test]
fn reports_full_disk() {
    let kernel = std::path::absolute(cache().join("kernels")).unwrap();
    if !is_installed(QEMU) {
        return skip(Need::Tool(QEMU), "a full disk");
    }
    if !kernel.join("rt/package").exists() {
        return skip(Need::LabKernel, "a full disk");
    }
    let empty = Empty::new("full");
    let place = empty.0.display();
    // A disk of 1 MB in a separate mount namespace. It has space for the directories, but not for
    // the files to boot.
    let script = format!(
        "mount -t tmpfs -o size=1m full {place} || exit 77\n\
         mkdir {place}/lab && ln -s {} {place}/lab/kernels\n\
         CARGO_TARGET_DIR={place} {} run true\n\
         status=$?\nls {place}/lab | grep work- && exit 78\nexit $status",
        kernel.display(),
        env!("CARGO_BIN_EXE_lab")
    );
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
        .stdin(Stdio::null())
        .output_within(TEST_LIMIT);
    let Ok(output) = output else { return skip(Need::Tool("unshare"), "a full disk") };
    match output.status.code() {
        Some(77 | 1) => skip(Need::MountNamespace, "a full disk"),
        _ => Ran::new(output).ends_with(125, &["No space left on device"]),
    }
}
