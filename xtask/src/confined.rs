//! Running tests of code with a bug in it: whatever the bug does, the machine stays usable.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::Result;

/// The memory that a test may have, in bytes.
pub(crate) const MEMORY: u64 = 4 << 30;

/// A command that runs `executable` without the right to real-time priorities, with bounded processor time and perhaps
/// bounded memory, and that ends with the thread that started it.
pub(crate) fn command(executable: &Path, limit: Duration, memory: Option<u64>) -> Result<Command> {
    let mut command = Command::new("prlimit");
    // Its threads together may use several CPUs.
    let processor = limit.as_secs() * 4 + 1;
    command.args(["--rtprio=0", "--core=0", &format!("--cpu={processor}")]);
    command.args(memory.map(|memory| format!("--as={memory}")));
    command.args(["setpriv", "--pdeathsig=KILL"]);
    if crate::unprivileged::is_root(&fs::read_to_string("/proc/self/status")?) {
        command.args(["--bounding-set=-sys_nice", "--inh-caps=-sys_nice"]);
    }
    command.arg(executable);
    Ok(command)
}
