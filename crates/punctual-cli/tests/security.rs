//! Commands next to an unprivileged attacker, user 65534 if the commands run as root. SECURITY.md
//! lists these tests.
//!
//! Without root, the attacker is another process of the same user, and the tests check what does
//! not depend on the user.

mod support;
#[path = "support/watched.rs"]
mod watched;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use punctual_process::child::{BoundedChild, TEST_LIMIT};
use punctual_trace::event::{Event, Kind};
use punctual_trace::write::synthetic::Synthetic;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::{Scratch, program, punctual, text};
use test_skip::{Need, skip};
use watched::App;

/// User ID of the attacker, who owns nothing.
const ATTACKER: u32 = 65534;
/// Time limit: a command that waits for an attacker would wait forever.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the user of the attacker.
fn attacker() -> u32 {
    if is_root() { ATTACKER } else { rustix::process::geteuid().as_raw() }
}

/// A process of the attacker, killed when dropped.
struct Attack(Child);

impl Attack {
    /// Starts a shell, and waits until it prints a line.
    fn start(directory: &Path, script: &str) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-ec", script]);
        Self::run(shell, directory, &[])
    }

    /// Starts a program that reads `input`, and waits until it prints a line with `ready`.
    fn run(command: Command, directory: &Path, input: &[u8]) -> Self {
        Self::try_run(command, directory, input).expect("the attack begins")
    }

    /// Like [`run`](Self::run); `None` if the program ends instead.
    fn try_run(mut command: Command, directory: &Path, input: &[u8]) -> Option<Self> {
        command.current_dir(directory);
        if is_root() {
            command.uid(ATTACKER).gid(ATTACKER);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // A program that has ended does not read.
        let _ = child.stdin.take().unwrap().write_all(input);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let has_begun = lines.any(|line| line.contains("ready"));
        let attack = Self(child);
        has_begun.then_some(attack)
    }
}

impl Drop for Attack {
    fn drop(&mut self) {
        let _ = self.0.end_at_once();
    }
}

/// Returns the output of a command that ends in time.
fn ends(command: &mut Command) -> Output {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > COMMAND_TIMEOUT {
            let _ = child.end_at_once();
            panic!("{command:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.output_within(TEST_LIMIT).unwrap()
}

/// `punctual trace record` in a mount namespace in which tracefs is mounted.
fn record(output: &Path) -> Command {
    let mut shell = Command::new("unshare");
    let mount = "mountpoint -q /sys/kernel/tracing || mount -t tracefs nodev /sys/kernel/tracing || exit 77; exec \"$@\"";
    shell.args(["--mount", "sh", "-c", mount, "sh"]).arg(program());
    shell.args(["trace", "record", "-o"]).arg(output).args(["--", "sleep", "0.3"]);
    shell
}

/// `punctual trace convert` of a recording.
fn convert(recording: &Path, output: &Path) -> Command {
    let mut command = punctual(&["trace", "convert"]);
    command.arg(recording).arg("-o").arg(output);
    command
}

/// Creates a directory as left by an interrupted recording.
fn unfinished(directory: &Path) {
    let mut synthetic = Synthetic::create(directory).unwrap();
    let kind = Kind::SoftirqEntry { softirq: 1 };
    synthetic.push(&Event { time: 1_000, cpu: 0, by: 0, kind }).unwrap();
    synthetic.finish().unwrap();
}

/// A file of the command's user that the attacker tries to change.
struct Victim(PathBuf, Vec<u8>, u64);

impl Victim {
    fn new(path: PathBuf) -> Self {
        fs::write(&path, "a secret of root\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        Self(path.clone(), fs::read(path).unwrap(), inode)
    }

    fn is_untouched(&self) -> bool {
        let metadata = fs::symlink_metadata(&self.0).unwrap();
        let mode = metadata.permissions().mode() & 0o777;
        (fs::read(&self.0).unwrap(), metadata.ino(), mode, metadata.uid())
            == (self.1.clone(), self.2, 0o600, rustix::process::geteuid().as_raw())
    }
}

/// Without root, `trace convert` writes instead, because recording needs root.
#[test]
fn trace_record_overwrites_no_file_through_planted_links() {
    let scratch = Scratch::new("links");
    let victim = Victim::new(scratch.file("victim"));
    let recording = scratch.file("recording");
    unfinished(&recording);
    // A directory that all users may write to, the same with the sticky bit, and one that belongs
    // to the attacker.
    let own = rustix::process::geteuid().as_raw();
    let directories = [("all", 0o777, own), ("sticky", 0o1777, own), ("theirs", 0o755, attacker())];
    for (directory, mode, owner) in directories {
        let names = ["trace.dat", "trace.dat.part", "trace.dat.raw"];
        for name in &names[..if is_root() { 3 } else { 2 }] {
            let place = scratch.file(directory);
            fs::create_dir(&place).unwrap();
            fs::set_permissions(&place, fs::Permissions::from_mode(mode)).unwrap();
            std::os::unix::fs::chown(&place, Some(owner), is_root().then_some(owner)).unwrap();
            drop(Attack::start(&place, &format!("ln -s ../victim {name}; echo ready")));
            let result = place.join("trace.dat");
            let output = ends(&mut if is_root() { record(&result) } else { convert(&recording, &result) });
            if output.status.code() == Some(77) {
                return skip(Need::Tracefs, "attacks on recordings");
            }
            let printed = text(&output.stderr);
            assert!(victim.is_untouched(), "{directory}/{name}: {printed}");
            match *name {
                "trace.dat.raw" => {
                    assert!(!output.status.success() && printed.contains("already exists"), "{printed}")
                }
                _ => {
                    assert!(output.status.success(), "{printed}");
                    let result = fs::symlink_metadata(&result).unwrap();
                    assert!(result.is_file() && result.uid() == own);
                    assert_eq!(result.permissions().mode() & 0o7777, 0o600);
                }
            }
            fs::remove_dir_all(&place).unwrap();
        }
    }
}

/// Without root, it checks that a refused recording leaves nothing.
#[test]
fn trace_record_keeps_directory_when_name_is_reused() {
    let scratch = Scratch::new("exchange");
    if !is_root() {
        let output =
            ends(punctual(&["trace", "record", "-o"]).arg(scratch.file("trace.dat")).args(["--", "true"]));
        if !output.status.success() {
            assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 0, "{}", text(&output.stderr));
        }
        return skip(Need::Root, "exchanges of a directory by another user");
    }
    let place = scratch.file("theirs");
    fs::create_dir(&place).unwrap();
    std::os::unix::fs::chown(&place, Some(ATTACKER), Some(ATTACKER)).unwrap();
    fs::create_dir(scratch.file("victims")).unwrap();
    let names = ["saved_cmdlines", "saved_tgids", "uname", "kallsyms"];
    let victims = names.map(|name| Victim::new(scratch.file("victims").join(name)));
    let script = "echo ready; while :; do
        if mv trace.dat.raw stolen 2>/dev/null; then ln -s ../victims trace.dat.raw; exec sleep 60; fi; done";
    let attack = Attack::start(&place, script);
    let output = ends(&mut record(&place.join("trace.dat")));
    if output.status.code() == Some(77) {
        return skip(Need::Tracefs, "attacks on recordings");
    }
    drop(attack);
    assert!(
        fs::symlink_metadata(place.join("stolen")).is_ok(),
        "the attack failed: {}",
        text(&output.stderr)
    );
    for victim in &victims {
        assert!(victim.is_untouched(), "{}", victim.0.display());
    }
    assert_eq!(fs::read_dir(scratch.file("victims")).unwrap().count(), names.len());
}

#[test]
fn results_are_private_and_replace_planted_links() {
    let scratch = Scratch::new("results");
    let victim = Victim::new(scratch.file("victim"));
    let model = scratch.file("tasks.toml");
    fs::write(&model, "schema = \"punctual-taskset/1\"\n[[task]]\nname = \"a\"\nlevel = 1\nperiod = \"1ms\"\nexecution = \"100us\"\n").unwrap();
    let model = model.to_str().unwrap();
    for arguments in [&["doctor", "--record", "result"][..], &["rta", model, "--html", "result"]] {
        drop(Attack::start(&scratch.0, "ln -s victim result; echo ready"));
        let output = ends(punctual(arguments).current_dir(&scratch.0));
        let printed = text(&output.stderr);
        assert!(victim.is_untouched(), "{arguments:?}: {printed}");
        let result = fs::symlink_metadata(scratch.file("result")).unwrap();
        assert!(result.is_file(), "{arguments:?}: {printed}");
        assert_eq!(result.permissions().mode() & 0o7777, 0o600, "{arguments:?}");
        fs::remove_file(scratch.file("result")).unwrap();
    }
}

/// Returns root's view of all apps.
fn top_once(arguments: &[&str]) -> Output {
    ends(punctual(&["top", "--count", "1"]).args(arguments))
}

#[test]
fn top_does_not_block_on_fifo() {
    let _alone = test_skip::alone();
    // Lazily unmounted, the file system has no path, so that the path of the FIFO is its name.
    let script = "mount -t tmpfs none /mnt; mkfifo -m 666 '/mnt/memfd:punctual:evil'
        exec 4<>'/mnt/memfd:punctual:evil'; exec 3<'/mnt/memfd:punctual:evil'; exec 4>&-
        umount -l /mnt; readlink /proc/$$/fd/3; echo ready; exec sleep 120";
    let mut shell = Command::new("unshare");
    shell.args(["--map-root-user", "--mount", "sh", "-ec", script]);
    let Some(attack) = Attack::try_run(shell, Path::new("/"), &[]) else {
        return skip(Need::MountNamespace, "a FIFO that looks like the figures of an app");
    };
    let link = fs::read_link(format!("/proc/{}/fd/3", attack.0.id())).unwrap();
    assert_eq!(link, Path::new("/memfd:punctual:evil"));
    let output = top_once(&["evil"]);
    let printed = text(&output.stderr);
    assert!(printed.contains("no running app, program or process is called evil"), "{printed}");
    let app = App::start("watched_program");
    let output = top_once(&["--json", &app.process()]);
    assert_eq!(json(&output)["process"].to_string(), app.process());
    // Any app of the user may be shown: others may run on this machine.
    assert_eq!(json(&top_once(&["--json"]))["user"], own_name());
}

#[test]
#[ignore = "a program of other tests"]
fn watched_program() {
    watched::run();
}

/// Exports the figures that it reads as those of an app.
#[test]
#[ignore = "a program of other tests"]
fn forger() {
    let mut figures = Vec::new();
    std::io::stdin().read_to_end(&mut figures).unwrap();
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(memfd_create("punctual:watched", flags).unwrap());
    file.write_all(&figures).unwrap();
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).unwrap();
    println!("ready");
    std::thread::sleep(Duration::from_secs(300));
}

/// Starts the attacker, with a copy of the figures of `app`.
fn forge(app: &App) -> Attack {
    let files =
        fs::read_dir(format!("/proc/{}/fd", app.process())).unwrap().flatten().map(|entry| entry.path());
    let mut files = files.filter(|path| {
        fs::read_link(path).is_ok_and(|link| link.to_string_lossy().starts_with("/memfd:punctual:watched"))
    });
    let figures = fs::read(files.next().expect("the app shows figures")).unwrap();
    let mut command = Command::new("/proc/self/exe");
    command.args(["--ignored", "--exact", "--nocapture", "forger"]);
    Attack::run(command, Path::new("/"), &figures)
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
}

#[test]
fn top_prefers_own_app_among_same_names() {
    let _alone = test_skip::alone();
    // The forger has the lower process ID, and would come first by it.
    let original = App::start("watched_program");
    let forger = forge(&original);
    drop(original);
    let app = App::start("watched_program");
    for arguments in [&["--json"][..], &["--json", "watched"]] {
        let snapshot = json(&top_once(arguments));
        // Any app of the user may be shown: others may run on this machine.
        assert_eq!(snapshot["user"], own_name());
        // The figures of one user are indistinguishable.
        assert!(!is_root() || snapshot["process"] != forger.0.id());
    }
    let snapshot = json(&top_once(&["--json", &forger.0.id().to_string()]));
    assert_eq!(snapshot["user"], user_of(attacker()).as_str());
    let table = text(&top_once(&[&app.process()]).stdout);
    assert!(table.contains(&format!("user {}, process {}", own_name(), app.process())), "{table}");
}

/// Returns the name of the user of the commands.
fn own_name() -> String {
    user_of(rustix::process::geteuid().as_raw())
}

/// Returns the name of a user in the system.
fn user_of(number: u32) -> String {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let line = users.lines().find(|line| line.split(':').nth(2) == Some(&number.to_string()));
    line.map_or(number.to_string(), |line| line.split(':').next().unwrap().to_owned())
}

#[test]
fn top_marks_values_of_stopped_app_as_stale() {
    let _alone = test_skip::alone();
    let app = App::start("watched_program");
    let process = app.process();
    let number = Pid::from_raw(process.parse().unwrap()).unwrap();
    kill_process(number, Signal::STOP).unwrap();
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(json(&top_once(&["--json", &process]))["stale"], true);
    let table = text(&top_once(&[&process]).stdout);
    assert!(table.contains("STALE: not updated for "), "{table}");
    kill_process(number, Signal::CONT).unwrap();
    let end = Instant::now() + COMMAND_TIMEOUT;
    while json(&top_once(&["--json", &process]))["stale"] != false {
        assert!(Instant::now() < end, "the figures stay stale");
    }
}

/// Without root, the other supervisor is in the same namespace if no other can be created.
#[test]
fn supervisor_in_other_pid_namespace_keeps_state() {
    let retained = |process: u32| {
        let prefix = format!("punctual-state-{process}-");
        let entries = fs::read_dir("/dev/shm").unwrap().flatten();
        entries
            .map(|entry| entry.path())
            .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix)))
    };
    let mut first = punctual(&["supervise", "--", "sleep", "120"]);
    let mut first = first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let end = Instant::now() + COMMAND_TIMEOUT;
    let directory = loop {
        match retained(first.id()) {
            Some(directory) => break directory,
            None => assert!(Instant::now() < end, "no directory for kept state"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    fs::write(directory.join("axis"), "state").unwrap();
    let namespace = ["--pid", "--fork", "--mount-proc"];
    let as_root = ["--map-root-user"];
    let mut second = Command::new("unshare");
    second.args(&as_root[..usize::from(!is_root())]).args(namespace);
    let mut check = Command::new("unshare");
    check.args(&as_root[..usize::from(!is_root())]).args(namespace).arg("true");
    if !ends(&mut check).status.success() {
        assert!(!is_root(), "root can create namespaces");
        second = Command::new("env");
    }
    let output = ends(second.arg(program()).args(["supervise", "--", "true"]));
    let is_there = directory.join("axis").exists();
    first.kill().unwrap();
    first.status_within(TEST_LIMIT).unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(is_there, "the state of a living supervisor is gone");
    // When killed, it has left the directory, which the next supervisor removes.
    assert!(directory.exists());
    assert!(ends(&mut punctual(&["supervise", "--", "true"])).status.success());
    assert!(!directory.exists());
}

#[test]
fn security_page_names_existing_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // Not in a published package.
    let Ok(page) = fs::read_to_string(root.join("SECURITY.md")) else { return };
    // The heads of tables name their columns.
    for row in page.lines().filter(|line| line.starts_with("| ") && !line.ends_with("| test |")) {
        assert!(row.contains(".rs::"), "no test in the row: {row}");
    }
    let named: Vec<_> = page.split('`').filter_map(|word| word.split_once("::")).collect();
    assert!(named.len() > 20, "{named:?}");
    let mut file = "";
    for (path, test) in named {
        if !path.is_empty() {
            file = path;
        }
        let paths = [format!("crates/{file}"), file.to_owned()];
        let source =
            paths.iter().find_map(|path| fs::read_to_string(root.join(path)).ok()).unwrap_or_default();
        assert!(source.contains(&format!("fn {test}()")), "{file}::{test}");
    }
}
