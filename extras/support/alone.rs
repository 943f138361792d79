//! Runs a test in isolation, with loopback in a separate network namespace.

use std::process::{Command, Stdio};

use punctual_process::child::{BoundedCommand, TEST_LIMIT};

/// Runs the ignored `test` of this program after the commands `up` have set up a network; `None` if
/// that is not possible, or the command `wanted` fails.
pub(crate) fn run(test: &str, up: &str, wanted: &str) -> Option<bool> {
    let unshare = |script: &str, arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["-n", "sh", "-c", script, "sh"]).args(arguments).stdin(Stdio::null());
        command.env_remove("ROS_DOMAIN_ID").env_remove("RMW_IMPLEMENTATION");
        command.status_within(TEST_LIMIT).is_ok_and(|status| status.success())
    };
    if !unshare(&format!("{up} 2>/dev/null && {wanted} 2>/dev/null"), &[]) {
        return None;
    }
    let this = std::env::current_exe().expect("a program knows where it is");
    let this = this.to_str().expect("it is text");
    Some(unshare(&format!("{up} && exec \"$@\""), &[this, "--ignored", "--exact", "--nocapture", test]))
}
