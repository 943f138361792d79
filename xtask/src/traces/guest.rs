//! A guest beside its host: both record, exchange messages meanwhile, and become one recording; what happens in the guest then has to
//! happen while the thread of this machine that is its CPU runs, as a script finds that shares no code with the project.
//!
//! The guest is the lab's, with PREEMPT_RT and one CPU, in the host's time.

use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::process::succeed;
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
    let mut lab = lab.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    // Not before the guest, for without messages the clocks drift apart.
    let said = lab.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines);
    let mut recorder = None;
    for line in said.map_while(Result::ok) {
        if line == READY {
            let mut record = Command::new(punctual);
            record.args(["trace", "record"]).args(HOST_EVENTS).arg("-o").arg(&host).arg("--").arg(punctual);
            record.args(["trace", "exchange", "--listen", &format!("127.0.0.1:{port}")]);
            recorder = Some(Recorder(record.stdin(Stdio::null()).spawn()?));
        } else {
            println!("{line}");
        }
    }
    if !lab.wait()?.success() {
        return Err("the guest could not be recorded: see above for the reason".into());
    }
    recorder.ok_or("the guest did not say that it is ready")?.done()?;

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

/// The recorder of this machine, which ends with the exchange, or with us: killed, it would leave the kernel recording.
struct Recorder(Child);

impl Recorder {
    fn done(mut self) -> Result {
        match self.0.wait()?.success() {
            true => Ok(()),
            false => Err("this machine could not be recorded: see above for the reason".into()),
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            let _ = kill_process(Pid::from_child(&self.0), Signal::INT);
            let _ = self.0.wait();
        }
    }
}
