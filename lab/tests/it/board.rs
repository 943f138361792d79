//! `cargo xtask lab run --host` and `lab test --host`, with this machine as the board: a separate
//! sshd on loopback.
//!
//! Its configuration and its keys are in a temporary directory, and its port is a free one. Skipped
//! with a message if there is no sshd.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::MutexGuard;
use std::thread;
use std::time::{Duration, Instant};

use punctual_process::child::{BoundedChild, BoundedCommand, TEST_LIMIT};
use test_skip::{Need, skip};

use crate::Ran;

/// An sshd that accepts one key, until it is dropped.
struct Server {
    sshd: Child,
    directory: PathBuf,
    /// A directory created for sshd, if it did not exist.
    made: Option<PathBuf>,
    port: u16,
    /// One at a time: they share the directory for sshd.
    _turn: MutexGuard<'static, ()>,
}

impl Server {
    /// Returns `None`, with a message, if sshd is not available.
    fn start(test: &str) -> Option<Self> {
        let turn = test_skip::alone();
        let sshd = ["/usr/sbin/sshd", "/sbin/sshd"].map(PathBuf::from).into_iter().find(|path| path.exists());
        let ssh = Command::new("ssh").arg("-V").stderr(Stdio::null()).status_within(TEST_LIMIT).is_ok();
        let (Some(sshd), true) = (sshd, ssh) else {
            skip(Need::Tool(if ssh { "sshd" } else { "ssh" }), "a board");
            return None;
        };
        let directory = std::env::temp_dir().join(format!("punctual-sshd-{test}-{}", std::process::id()));
        fs::create_dir(&directory).expect("the name is free");
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).expect("it is ours");
        for key in ["host", "user"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(directory.join(key))
                .status_within(TEST_LIMIT);
            assert!(made.expect("it comes with ssh").success());
        }
        // The directory into which sshd chroots as root.
        let privileges = Path::new("/run/sshd");
        let made = fs::create_dir(privileges).is_ok().then(|| privileges.to_owned());
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let place = directory.display();
        let configuration = format!(
            "ListenAddress 127.0.0.1\nPort {port}\nHostKey {place}/host\nAuthorizedKeysFile {place}/user.pub\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\nPidFile none\n\
             SetEnv TMPDIR={place}\n"
        );
        fs::write(directory.join("config"), configuration).unwrap();
        let sshd = Command::new(sshd)
            .args(["-D", "-e", "-f"])
            .arg(directory.join("config"))
            .stdin(Stdio::null())
            .stderr(fs::File::create(directory.join("log")).unwrap())
            .spawn()
            .expect("it is there");
        let mut server = Self { sshd, directory, made, port, _turn: turn };
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = server.sshd.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < deadline, "{ended:?}\n{}", server.log());
            thread::sleep(Duration::from_millis(20));
        }
        Some(server)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// Returns `cargo xtask lab` with these words, for which ssh connects to the server with the
    /// key of this name.
    fn lab(&self, key: &str, words: &[&str]) -> Command {
        let mut command = crate::lab(words);
        let place = self.directory.display();
        let ssh = format!(
            "ssh -F none -p {} -i {place}/{key} -o IdentitiesOnly=yes -o IdentityAgent=none -o StrictHostKeyChecking=no \
             -o UserKnownHostsFile={place}/known -o LogLevel=ERROR",
            self.port
        );
        command.env("PUNCTUAL_LAB_SSH", ssh);
        command
    }

    /// Fails if a run has left a directory on the board.
    fn has_nothing_left(&self) {
        let entries = fs::read_dir(&self.directory).unwrap().flatten();
        let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        assert_eq!(names.find(|name| name.starts_with("punctual-lab-")), None);
    }

    fn ran(&self, words: &[&str]) -> Ran {
        Ran::of(&mut self.lab("user", words))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.sshd.end_at_once();
        let _ = fs::remove_dir_all(&self.directory);
        if let Some(made) = &self.made {
            let _ = fs::remove_dir(made);
        }
    }
}

#[test]
fn runs_on_board() {
    let Some(server) = Server::start("runs_on_board") else { return };
    let results = server.directory.join("results");
    let results = results.display().to_string();

    let script = "echo out; echo err >&2; mkdir d; echo $PUNCTUAL_TEST_WORD >d/f; exit 3";
    let words = ["run", "--host", "127.0.0.1", "--results", &results, "--", "sh", "-c", script];
    let ran = Ran::of(server.lab("user", &words).env("PUNCTUAL_TEST_WORD", "it's so"));
    ran.ends_with(3, &["err\n", "1 file in"]);
    assert_eq!(ran.stdout, "out\n");
    assert_eq!(fs::read_to_string(Path::new(&results).join("d/f")).unwrap(), "it's so\n");

    // A program of ours, staged there.
    let program = server.directory.join("hello");
    fs::write(&program, "#!/bin/sh\necho \"$0 $1\"\n").unwrap();
    let ran = server.ran(&["run", "--host", "127.0.0.1", "--", &program.display().to_string(), "a b"]);
    ran.ends_with(0, &[]);
    let staged = format!("{}/punctual-lab-", server.directory.display());
    assert!(ran.stdout.starts_with(&staged) && ran.stdout.ends_with("/bin/hello a b\n"), "{}", ran.stdout);

    let ran = server.ran(&["run", "--host", "127.0.0.1", "--timeout", "1", "--", "sleep", "100"]);
    ran.ends_with(124, &["within 1 s (--timeout)"]);
    server.has_nothing_left();
}

#[test]
fn error_explains_unreachable_board() {
    let Some(server) = Server::start("error_explains_unreachable_board") else { return };
    // A key unknown to the server.
    let ran = Ran::of(&mut server.lab("host", &["run", "--host", "127.0.0.1", "--", "true"]));
    ran.ends_with(125, &["must work without a password"]);
    server.ran(&["run", "--host", "-v", "--", "true"]).ends_with(125, &[]);
}

#[test]
fn runs_suite_on_board() {
    let Some(server) = Server::start("runs_suite_on_board") else { return };
    // Cases with almost no build, whose results depend on this machine.
    let ran = server.ran(&["test", "--host", "127.0.0.1", "--only", "kernel is"]);
    let real_time = fs::read_to_string("/proc/version").unwrap().contains("PREEMPT_RT");
    ran.ends_with(if real_time { 0 } else { 1 }, &[]);
    let verdict = if real_time { " ok" } else { "FAILED: another kernel runs" };
    let line = ran.stdout.lines().find(|line| line.contains("the kernel is PREEMPT_RT"));
    assert!(line.is_some_and(|line| line.contains(verdict)), "{}{}", ran.stdout, ran.stderr);

    let ran = server.ran(&["test", "--host", "127.0.0.1", "--only", "hardly a tick"]);
    ran.ends_with(0, &[]);
    assert!(ran.stdout.contains("SKIPPED: it needs boot parameters"), "{}", ran.stdout);
    assert!(ran.stdout.contains("*** SKIPPED: 1 case ***"), "{}", ran.stdout);
    server.has_nothing_left();
}
