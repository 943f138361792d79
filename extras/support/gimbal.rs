//! The camera gimbal of `demos/gimbal`, with a transport and a peer.

use std::process::{Command, Stdio};

use clap::Parser;
use gimbal::cli::Args;
use gimbal::program;
use punctual_process::child::{BoundedChild, BoundedCommand, TEST_LIMIT};

use super::transport::{Process, signal};

/// Makes the ignored test [`app`] the process of the gimbal.
const GIMBAL: &str = "PUNCTUAL_TEST_GIMBAL";

/// The process of the gimbal. Does nothing in the first process.
pub(crate) fn app() {
    if std::env::var_os(GIMBAL).is_none() {
        return;
    }
    let report = std::env::temp_dir().join(format!("gimbal-{}.html", std::process::id()));
    let file = report.to_str().expect("it is text");
    let arguments = ["gimbal", "--transports", "--tune", "--seconds", "3600", "--report", file];
    // Its exit status also reports messages that the transport has lost.
    let _ = program::run(&Args::parse_from(arguments));
    std::fs::remove_file(report).expect("it is written");
}

/// Runs the gimbal, its transport and a peer until the peer ends; `app` is the ignored test that
/// calls [`app`]. Then waits until the transport prints `last`. Returns the output of the peer and
/// of the gimbal.
pub(crate) fn run(
    app: &str,
    transport: &mut Command,
    peer: &mut Command,
    last: Option<&str>,
) -> (String, String) {
    let mut gimbal = Command::new(std::env::current_exe().expect("a program knows where it is"));
    gimbal.args(["--ignored", "--exact", "--nocapture", app]).env(GIMBAL, "1").stdin(Stdio::null());
    let gimbal = gimbal.stdout(Stdio::piped()).spawn().expect("it can be run");
    let transport = Process::start_transport(transport);
    let output = peer.stdout_within(TEST_LIMIT).expect("it can be run");
    if let Some(last) = last {
        transport.wait_for(last);
    }
    signal(gimbal.id().cast_signed(), libc::SIGINT);
    let printed = gimbal.output_within(TEST_LIMIT).expect("it ends").stdout;
    let printed = String::from_utf8_lossy(&printed).into_owned();
    assert!(output.status.success(), "{printed}");
    assert!(transport.status().success(), "it ends with the app");
    (String::from_utf8_lossy(&output.stdout).into_owned(), printed)
}
