//! `--host user@board`: the same programs and cases on a real machine, over ssh.
//!
//! Nothing is installed there. The programs are in a directory in the machine's `/tmp`, or in its
//! `TMPDIR`, which is removed afterwards, even if the run is interrupted. ssh never asks for a
//! password: a key must be set up.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use punctual_process::child::BoundedCommand;
use xtask_support::process::TOOL_LIMIT;
use xtask_support::{Result, cargo};

use super::stage::{self, Job, PROGRAMS, check_machine};
use crate::tools;
use crate::trouble::{Interrupt, Trouble};
use crate::workdir::{self, Workdir};

/// The command to call instead of `ssh`, such as `ssh -p 2222 -i key`.
const SSH: &str = "PUNCTUAL_LAB_SSH";

/// The exit status of ssh for its own failures.
const SSH_FAILED: i32 = 255;

/// The directory for results in a guest, and for the files of a case.
const RESULTS: &str = "/results";
const TEMPORARY: &str = "/tmp";

/// A machine reachable by ssh, with a directory of the lab.
pub(crate) struct Board<'a> {
    host: String,
    interrupt: &'a Interrupt,
    /// Our directory there.
    directory: String,
    /// Its description: `uname -srm`.
    pub(crate) system: String,
    pub(crate) cpus: u32,
}

impl<'a> Board<'a> {
    /// Connects to the machine and creates the directory.
    pub(crate) fn connect(host: &str, interrupt: &'a Interrupt) -> Result<Self> {
        if host.is_empty() || host.starts_with('-') {
            return Err(format!("--host {host}: it takes user@board, as ssh does").into());
        }
        let mut board = Self {
            host: host.to_owned(),
            interrupt,
            directory: String::new(),
            system: String::new(),
            cpus: 0,
        };
        let printed = board.ask(
            "set -e; umask 077; directory=$(mktemp -d ${TMPDIR:-/tmp}/punctual-lab-XXXXXX); \
             mkdir $directory/bin $directory/results $directory/tmp; \
             echo $directory; uname -srm; nproc",
        )?;
        let mut lines = printed.lines();
        let mut next = || lines.next().unwrap_or_default().trim().to_owned();
        let directory = next();
        board.system = next();
        board.cpus = next().parse().unwrap_or(1);
        // Shells expand it without quotes, and it is removed at the end.
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/-_.".contains(letter);
        if !(directory.starts_with('/')
            && directory.contains("/punctual-lab-")
            && directory.chars().all(is_plain))
        {
            return Err(format!("{host} does not answer like a Linux machine: {printed}").into());
        }
        board.directory = directory;
        Ok(board)
    }

    /// Returns the architecture, as named by the kernel.
    pub(crate) fn architecture(&self) -> &str {
        self.system.rsplit(' ').next().unwrap_or_default()
    }

    /// Copies programs and scripts of `job` there.
    pub(crate) fn stage(&self, job: &Job) -> Result {
        let work = Workdir::new()?;
        let [tar] = tools::require(["tar"])?;
        let archive = work.path().join("archive.tar");
        let mut pack = Command::new(tar);
        pack.args(["-c", "--owner=0", "--group=0", "-f"]).arg(&archive);
        for (name, text) in &job.scripts {
            let script = work.path().join(name);
            std::fs::write(&script, relocated(text, &self.directory))?;
            pack.arg("-C").arg(work.path()).arg(name);
        }
        for program in &job.programs {
            check_machine(program, self.architecture())?;
            let program = std::path::absolute(program)?;
            pack.arg("-C").arg(program.parent().unwrap_or(Path::new("/")));
            pack.arg(program.file_name().unwrap_or_default());
        }
        if job.scripts.is_empty() && job.programs.is_empty() {
            return Ok(());
        }
        let status = self.interrupt.run(&mut pack)?;
        if !status.success() {
            return Err(format!("cannot pack the programs: {status}").into());
        }
        let unpack = format!("tar -x -C {}/bin -f - && chmod +x {}/bin/*", self.directory, self.directory);
        let mut ssh = self.ssh(&unpack)?;
        let status = self.interrupt.run_with(ssh.stdout(io::stderr()), File::open(&archive)?.into())?;
        if status.success() { Ok(()) } else { Err(self.cannot("take the programs", status).into()) }
    }

    /// Runs `job` with our output; returns its status.
    pub(crate) fn run(&self, job: &Job, seconds: u64) -> Result<i32> {
        // `timeout` also ends processes that we cannot reach any more, if the connection is lost.
        // It may kill itself as well, so a shell waits for it.
        let command = format!(
            "cd {0}/results && PATH={0}/bin:$PATH timeout -s KILL {seconds} sh -c {1}; exit $?",
            self.directory,
            stage::quoted(&job.script().replace(PROGRAMS, &format!("{}/bin", self.directory)))
        );
        let status = self.interrupt.run(&mut self.ssh(&command)?)?;
        match status.code() {
            Some(SSH_FAILED) | None => Err(self.cannot("run the command", status).into()),
            // The status that a shell returns if its child was killed by SIGKILL, which `timeout`
            // does here.
            Some(137) => Err(Trouble::Timeout(format!(
                "the command was killed: it did not end within {seconds} s (--timeout), or memory ran out"
            ))
            .into()),
            Some(status) => Ok(status),
        }
    }

    /// Returns the command that runs the staged `script`, with captured output and a time limit.
    pub(crate) fn case(&self, script: &str, seconds: u32) -> Result<Command> {
        // Programs write to memory, because waiting for the network would be part of the test.
        self.ssh(&format!(
            "export PATH={0}/bin:$PATH; mkdir {0}/case && cd {0}/case || exit 125; \
             timeout -s KILL {seconds} sh {0}/bin/{script} >{0}/tmp/stdout 2>{0}/tmp/stderr; status=$?; \
             cat {0}/tmp/stdout; cat {0}/tmp/stderr >&2; cd /; rm -rf {0}/case {0}/tmp/*; exit $status",
            self.directory
        ))
    }

    /// Copies the files that the command left in its directory to `to`; returns the number of files
    /// and directories.
    pub(crate) fn fetch(&self, to: &Path) -> Result<usize> {
        let work = Workdir::new()?;
        let archive = work.path().join("results.tar");
        let mut file = File::create_new(&archive)?;
        let mut ssh = self.ssh(&format!("tar -c -C {}/results -f - .", self.directory))?;
        let status = self.interrupt.run(ssh.stdout(file.try_clone()?))?;
        if !status.success() {
            return Err(self.cannot("hand back files", status).into());
        }
        file.rewind()?;
        let results = work.path().join("results");
        std::fs::create_dir(&results)?;
        let [tar] = tools::require(["tar"])?;
        // Without their owners.
        let mut unpack = Command::new(tar);
        unpack.args(["-x", "--no-same-owner", "-C"]).arg(&results).args(["-f", "-"]);
        let status = self.interrupt.run_with(&mut unpack, file.into())?;
        if !status.success() {
            return Err(format!("cannot unpack the files that came back: {status}").into());
        }
        workdir::move_contents(&results, to)
    }

    /// Returns the output of a shell command there.
    fn ask(&self, command: &str) -> Result<String> {
        let mut ssh = self.ssh(command)?;
        let output = ssh.stdout_within(TOOL_LIMIT)?;
        self.interrupt.check()?;
        if !output.status.success() {
            return Err(self.cannot("be reached", output.status).into());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn ssh(&self, command: &str) -> Result<Command> {
        let words = env::var(SSH).unwrap_or_else(|_| "ssh".to_owned());
        let mut words = words.split_whitespace();
        let program = words.next().ok_or_else(|| format!("{SSH} is empty"))?;
        let program = match tools::find(program) {
            Some(path) => path,
            None if program.contains('/') => program.into(),
            None => return Err(tools::require([program]).map(|_| ()).unwrap_err()),
        };
        let mut ssh = Command::new(program);
        ssh.args(words).args(["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]);
        // A hanging board is detected after three of these.
        ssh.args(["-o", "ServerAliveInterval=10"]);
        ssh.args([OsStr::new("--"), OsStr::new(&self.host), OsStr::new(command)]);
        Ok(ssh)
    }

    fn cannot(&self, what: &str, status: impl std::fmt::Display) -> String {
        format!(
            "{} could not {what} ({status}). Try `ssh {} true`, which must work without a password (ssh-copy-id); \
             {SSH} sets the command to use instead of ssh",
            self.host, self.host
        )
    }
}

impl Drop for Board<'_> {
    fn drop(&mut self) {
        if self.directory.is_empty() {
            return;
        }
        let removed = self
            .ssh(&format!("rm -rf {}", self.directory))
            .map(|mut ssh| ssh.stdin(Stdio::null()).status_within(TOOL_LIMIT));
        if !matches!(removed, Ok(Ok(status)) if status.success()) {
            let _ = writeln!(io::stderr(), "lab: {} stays behind on {}", self.directory, self.host);
        }
    }
}

/// Replaces the directories that only a guest has at its root by those below `directory`.
fn relocated(script: &str, directory: &str) -> String {
    // Marked first, so that our directory, which is in /tmp, is not itself replaced.
    let (programs, results, temporary) =
        (format!("{PROGRAMS}/"), format!("{RESULTS}/"), format!("{TEMPORARY}/"));
    script
        .replace(&programs, "\0bin/")
        .replace(&results, "\0results/")
        .replace(&temporary, "\0tmp/")
        .replace('\0', &format!("{directory}/"))
}

/// Returns a cargo command that builds for a machine for which `uname -m` prints `architecture`.
pub(crate) fn cross_cargo(architecture: &str) -> Result<Command> {
    let mut command = cargo::command();
    if architecture == env::consts::ARCH {
        return Ok(command);
    }
    let target = target(architecture)?;
    let linker = format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_"));
    if env::var_os(&linker).is_none() {
        command.env(linker, tools::require_arm64()?);
    }
    command.env("CARGO_BUILD_TARGET", target);
    Ok(command)
}

/// Returns the name of the target in rustc.
fn target(architecture: &str) -> Result<&'static str> {
    match architecture {
        "aarch64" => Ok("aarch64-unknown-linux-gnu"),
        other => Err(format!("the lab builds for x86_64 and aarch64, not for {other}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relocates_directories_of_script() {
        let script = "cd /tmp/case; /lab/bin/app >/tmp/out; mv /tmp/out /results/0";
        let there = relocated(script, "/tmp/punctual-lab-x");
        assert_eq!(
            there,
            "cd /tmp/punctual-lab-x/tmp/case; /tmp/punctual-lab-x/bin/app >/tmp/punctual-lab-x/tmp/out; \
             mv /tmp/punctual-lab-x/tmp/out /tmp/punctual-lab-x/results/0"
        );
    }

    #[test]
    fn rejects_host_with_leading_dash() {
        let interrupt = Interrupt::default();
        for host in ["", "-oProxyCommand=x"] {
            assert!(Board::connect(host, &interrupt).is_err(), "{host}");
        }
    }

    #[test]
    fn builds_for_own_processor_without_cross_compiler() {
        let command = cross_cargo(env::consts::ARCH).unwrap();
        assert!(command.get_envs().all(|(name, _)| name != "CARGO_BUILD_TARGET"));
        assert!(cross_cargo("m68k").unwrap_err().to_string().contains("not for m68k"));
    }
}
