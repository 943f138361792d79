//! A guest beside its host: both record, exchange messages meanwhile, and become one recording; what happens in the guest then has to
//! happen while the thread of this machine that is its CPU runs, as a script finds that shares no code with the project.
//!
//! The guest is the lab's, with PREEMPT_RT and one CPU, in the host's time.

use std::env;
use std::fs::{self, File};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use punctual_process::child::BoundedChild;

use crate::process::{lines, succeed};
use crate::{Result, cargo};

/// What the guest calls this machine.
const HOST: &str = "10.0.2.2";

/// Of this machine only who runs when, which is what the script looks at; of the guest the usual. A busy host loses none of so many.
const HOST_EVENTS: [&str; 4] = ["--events", "sched", "--buffer", "32768"];

/// What the guest prints before it records.
const READY: &str = "ready";

/// So many, for nobody answers before this machine records too.
const MESSAGES: &str = "1000";

/// Seconds that boot, recording and exchange may take on a busy machine.
const TIMEOUT: &str = "300";

/// Limit for the lab, which ends the guest after [`TIMEOUT`] and then copies its files.
const LAB_LIMIT: Duration = Duration::from_secs(600);

/// How long a program may take to end once there is nothing left for it to do.
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
    // First, or the time that it takes to fetch a kernel would be recorded.
    succeed(Command::new(&xtask).args(["lab", "kernel", "rt"]))?;
    // Free a moment ago; what takes it meanwhile makes the recorder say so.
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
    // Not before the guest, for without messages the clocks drift apart.
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
    command.args(["trace", "report", "--all"]).arg(&both);
    succeed(command.stdout(File::create(&report)?))?;
    let mut command = Command::new("trace-cmd");
    command.args(["report", "-t", "-N", "-i"]).arg(&both);
    succeed(command.stdout(File::create(&text)?).stderr(Stdio::null()))?;
    let script = cargo::root().join("xtask/src/traces/guest.py");
    succeed(Command::new("python3").arg(script).args([&text, &report]))
}

/// A program that ends with us: a recorder that is killed leaves the kernel recording.
struct Program(Child);

impl Program {
    fn succeed(mut self, recorded: &str) -> Result {
        match self.0.status_within(END_LIMIT)?.success() {
            true => Ok(()),
            false => Err(format!("{recorded} could not be recorded: see above for the reason").into()),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.end(END_LIMIT);
    }
}
