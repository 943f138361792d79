//! A guest and its host: both record while they exchange messages, and the two recordings are
//! merged. An independent script then checks that the guest's events occur while the host thread of
//! its CPU runs.
//!
//! The guest is that of the lab, with PREEMPT_RT and one CPU, on the host's time.

use std::env;
use std::fs::{self, File};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use punctual_process::child::BoundedChild;

use crate::process::{lines, succeed};
use crate::{Result, cargo};

/// The guest's name for this machine.
const HOST: &str = "10.0.2.2";

/// On this machine, only scheduling events, which the script evaluates; in the guest, the default.
/// The buffer is large enough for a busy host.
const HOST_EVENTS: [&str; 4] = ["--events", "sched", "--buffer", "32768"];

/// The guest prints this before it records.
const READY: &str = "ready";

/// The messages that the guest sends; many, because they are answered only once this machine also
/// records.
const MESSAGES: &str = "1000";

/// The limit for boot, recording and exchange on a busy machine, in seconds.
const TIMEOUT: &str = "300";

/// Limit for the lab, which ends the guest after [`TIMEOUT`] and then copies its files.
const LAB_LIMIT: Duration = Duration::from_secs(600);

/// The time a program may take to end once it has nothing left to do.
const END_LIMIT: Duration = Duration::from_secs(60);

pub(super) fn run(punctual: &Path) -> Result {
    let scratch = cargo::target_dir().join("traces/guest");
    if scratch.exists() {
        fs::remove_dir_all(&scratch)?;
    }
    fs::create_dir_all(&scratch)?;
    let file = |name: &str| scratch.join(name);
    let (guest, host, both) = (file("guest.dat"), file("host.dat"), file("both.dat"));
    let (report, text) = (file("report.txt"), file("both.txt"));

    let xtask = env::current_exe()?;
    // First, because otherwise the time to fetch a kernel would be recorded.
    succeed(Command::new(&xtask).args(["lab", "kernel", "rt"]))?;
    // The port was free a moment ago; if another process takes it, the recorder reports this.
    let port = UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut lab = Command::new(&xtask);
    lab.args(["lab", "run", "--network", "--timeout", TIMEOUT, "--results"])
        .arg(&scratch)
        .arg("--with")
        .arg(punctual);
    lab.args(["--", "sh", "-c"]).arg(format!(
        "echo {READY}; exec punctual trace record -o guest.dat -- punctual trace exchange {HOST}:{port} --count {MESSAGES}"
    ));
    let mut lab = Program(lab.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?);
    let output = lines(lab.0.stdout.take().ok_or("the lab has no output")?);
    let deadline = Instant::now() + LAB_LIMIT;
    // Only after the guest has started, because without messages the clocks drift apart.
    let mut recorder = None;
    while let Ok(line) = output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        if line == READY {
            let mut record = Command::new(punctual);
            record.args(["trace", "record"]).args(HOST_EVENTS).arg("-o").arg(&host).arg("--").arg(punctual);
            record.args(["trace", "exchange", "--listen", &format!("127.0.0.1:{port}")]);
            recorder = Some(Program(record.stdin(Stdio::null()).spawn()?));
        } else {
            println!("{line}");
        }
    }
    lab.succeed("the guest")?;
    recorder.ok_or("the guest did not report that it was ready")?.succeed("this machine")?;

    let mut merge = Command::new(punctual);
    succeed(merge.args(["trace", "merge"]).args([&guest, &host]).arg("-o").arg(&both))?;
    let mut command = Command::new(punctual);
    command.args(["trace", "report", "--task", "*"]).arg(&both);
    succeed(command.stdout(File::create(&report)?))?;
    let mut command = Command::new("trace-cmd");
    command.args(["report", "-t", "-N", "-i"]).arg(&both);
    succeed(command.stdout(File::create(&text)?).stderr(Stdio::null()))?;
    let script = cargo::root().join("xtask/src/traces/guest.py");
    succeed(Command::new("python3").arg(script).args([&text, &report]))
}

/// A program that ends with this process: killing a recorder would leave the kernel recording.
struct Program(Child);

impl Program {
    fn succeed(mut self, recorded: &str) -> Result {
        if self.0.status_within(END_LIMIT)?.success() {
            return Ok(());
        }
        Err(format!("{recorded} could not be recorded: see above for the reason").into())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.end(END_LIMIT);
    }
}
