//! The commands that messages print: each is in a table with a rehearsal, which runs the same
//! program with the same options and changes nothing outside of a scratch directory.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use punctual_process::child::{BoundedCommand, TEST_LIMIT};
use test_skip::{Need, is_installed, skip};
use xtask_support::cargo;

use crate::support::{Scratch, program, punctual, text};

/// The programs whose commands are looked for.
const PROGRAMS: [&str; 27] = [
    "apt",
    "babeltrace2",
    "cargo",
    "chrt",
    "cpupower",
    "docker",
    "ethtool",
    "insmod",
    "lttng",
    "modprobe",
    "mount",
    "perf",
    "podman",
    "prlimit",
    "punctual",
    "rmmod",
    "setcap",
    "stress-ng",
    "swapoff",
    "sysctl",
    "systemctl",
    "taskset",
    "trace-cmd",
    "tuna",
    "ulimit",
    "umount",
    "usermod",
];

/// A command, up to its first variable part or the prose after it, and its rehearsal: a script that
/// must succeed if the program is installed. `--help` makes a command of `punctual` check its
/// options without running.
const TABLE: &[(&str, &str)] = &[
    ("apt install linux-image-rt-", "apt-get --version"),
    (
        "babeltrace2 --output-format=ctf --output=DIR",
        "babeltrace2 convert --help | grep -e --output-format && babeltrace2 --output-format=ctf --help",
    ),
    ("cargo run --release --features semihosting", "cargo run --release --features semihosting --help"),
    ("cargo test -- --test-threads=1", "cargo test --help"),
    ("cargo test && cargo run --release", "cargo test --help && cargo run --release --help"),
    ("cargo run --release", "cargo run --release --help"),
    ("cargo feature", "true"),
    ("chrt -f -p", "chrt -p $$ && chrt --help | grep -e --fifo"),
    ("chrt -o 0", "chrt -o 0 true"),
    ("cpupower -c {which} frequency-set -g performance", "cpupower frequency-set --help | grep -e '-g'"),
    ("cpupower -c {which} idle-set -D {LONG}", "cpupower idle-set --help | grep -e '-D'"),
    ("cpupower frequency-set -g performance", "cpupower frequency-set --help | grep -e '-g'"),
    ("cpupower frequency-set -u FREQUENCY", "cpupower frequency-set --help | grep -e '-u'"),
    ("docker run --cpuset-cpus", "docker run --help | grep -e --cpuset-cpus"),
    (
        "docker run without --cpus and --cpu-quota",
        "docker run --help | grep -e --cpus && docker run --help | grep -e --cpu-quota",
    ),
    (
        "docker run {flags} IMAGE",
        "docker run --help | grep -e --cap-add && docker run --help | grep -e --ulimit",
    ),
    ("lttng enable-channel --kernel --subbuf-size 4M", "lttng enable-channel --help | grep -e --subbuf-size"),
    ("modprobe gpio-sim", "modprobe --version"),
    ("modprobe punctual_cpu", "modprobe --version"),
    ("mount -o remount", "mount --help | grep -e '-o, --options'"),
    ("mount -t", "mount --help | grep -e '-t, --types'"),
    ("mount /sys", "mount --version"),
    ("mount it as root with", "true"),
    ("mount tracefs", "true"),
    (
        "perf record -a -e 'sched:*'",
        "perf record -h 2>&1 | grep -e '-a, --all-cpus' && perf record -h 2>&1 | grep -e '-e, --event'",
    ),
    (
        "perf record -e 'sched:*' -a",
        "perf record -h 2>&1 | grep -e '-a, --all-cpus' && perf record -h 2>&1 | grep -e '-e, --event'",
    ),
    ("perf record -m 16M", "perf record -h 2>&1 | grep -e '-m, --mmap-pages'"),
    ("perf record", "perf record -h 2>&1 | grep -e --event"),
    ("perf sched record", "perf sched -h 2>&1 | grep record"),
    ("podman run --cpuset-cpus", "podman run --help | grep -e --cpuset-cpus"),
    (
        "podman run without --cpus and --cpu-quota",
        "podman run --help | grep -e --cpus && podman run --help | grep -e --cpu-quota",
    ),
    (
        "podman run {flags} IMAGE",
        "podman run --help | grep -e --cap-add && podman run --help | grep -e --ulimit",
    ),
    ("prlimit --pid $$ --memlock=unlimited", "prlimit --pid $$ --memlock"),
    ("prlimit --pid $$ --rtprio=99", "prlimit --pid $$ --rtprio"),
    ("rmmod punctual_cpu", "rmmod --version"),
    ("swapoff -a", "swapoff --help | grep -e '-a, --all'"),
    ("sysctl kernel.sched_rt_runtime_us=-1", "sysctl -n kernel.sched_rt_runtime_us"),
    ("systemctl disable --now", "systemctl --help | grep -e --now && systemctl --help | grep -e 'disable '"),
    ("systemctl restart irqbalance", "systemctl --help | grep -e 'restart '"),
    ("systemctl stop irqbalance", "systemctl --help | grep -e 'stop '"),
    ("taskset -c", "taskset -c 0 true || taskset --help | grep -e -c"),
    ("trace-cmd convert --compression none", "trace-cmd convert -h 2>&1 | grep -e --compression"),
    ("trace-cmd convert --file-version 7", "trace-cmd convert -h 2>&1 | grep -e --file-version"),
    ("trace-cmd record -C tsc2nsec", "trace-cmd record -h 2>&1 | grep -e '-C'"),
    ("trace-cmd record -b 20000", "trace-cmd record -h 2>&1 | grep -e '-b'"),
    ("trace-cmd record", "trace-cmd record -h 2>&1 | grep 'trace-cmd record'"),
    ("trace-cmd report", "trace-cmd report -h 2>&1 | grep 'trace-cmd report'"),
    ("ulimit -R unlimited", "bash -c 'ulimit -R'"),
    ("ulimit -f unlimited", "ulimit -f"),
    ("ulimit -n 1024", "ulimit -n"),
    ("ulimit -n", "ulimit -n"),
    ("ulimit -s", "ulimit -s"),
    ("ulimit -u", "bash -c 'ulimit -u'"),
    ("ulimit -v", "bash -c 'ulimit -v'"),
    ("punctual bench --json", "punctual bench rtos --only 'thread switch' --samples 1 --json=new.json"),
    ("punctual bench latency", "punctual bench latency --help"),
    ("punctual bench", "punctual bench rtos --only 'thread switch' --samples 1"),
    ("punctual check", "punctual check --period 1ms --duration 20ms --json=c.json || true"),
    ("punctual completions <SHELL>", "punctual completions bash"),
    ("punctual doctor --fix", "punctual doctor --fix --help"),
    ("punctual doctor --record m.txt", "punctual doctor --record m.txt || test $? = 1"),
    ("punctual doctor --undo", "punctual doctor --undo --help"),
    ("punctual isolate boot", "punctual isolate boot --cpus 0 --help"),
    ("punctual isolate run --cpus", "punctual isolate run --cpus 1 --help"),
    (
        "punctual isolate run --offline --cpus N -- BARE THIS",
        "punctual isolate run --offline --cpus 1 --help",
    ),
    ("punctual isolate run", "punctual isolate run --cpus 1 --help"),
    ("punctual isolate stop", "punctual isolate stop --help"),
    ("punctual rta --assign --", "punctual rta --assign tasks.toml"),
    ("punctual rta", "punctual rta tasks.toml"),
    ("punctual supervise", "punctual supervise -- true"),
    ("punctual top | cat", "punctual top --help | cat"),
    ("punctual top", "punctual top --help"),
    (
        "punctual trace convert {directory} --remove -o FILE",
        "cp -r t.dat.raw c.raw && punctual trace convert c.raw --remove -o c.dat",
    ),
    ("punctual trace exchange", "punctual trace exchange --help"),
    ("punctual trace record -- punctual trace exchange …", "punctual trace record --help"),
    ("punctual trace record -- ./my-app", "punctual trace record --help"),
    ("punctual trace record -- {program}", "punctual trace record --help"),
    ("punctual trace record --buffer 65536", "punctual trace record --buffer 65536 --help"),
    ("punctual trace record --events usual", "punctual trace record --events usual --help"),
    ("punctual trace record", "punctual trace record --help"),
    ("punctual trace report {file} --from -1s", "punctual trace report t.dat --task '*' --from -1s"),
    ("punctual trace report", "punctual trace report t.dat --task '*'"),
    ("punctual trace", "punctual trace --help"),
    ("punctual cannot read", "true"),
    ("punctual {}", "true"),
    ("punctual ..", "true"),
];

/// Returns the literals of a source file, without comments, tests, help and line continuations.
fn literals(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    let code = source.lines().filter(is_code).collect::<Vec<_>>().join("\n").replace("'\"'", "");
    let mut literals = Vec::new();
    let mut rest = code.as_str();
    while let Some((before, from)) = rest.split_once('"') {
        let mut literal = String::new();
        let mut chars = from.char_indices();
        let end = loop {
            match chars.next() {
                Some((at, '"')) => break at + 1,
                Some((_, '\\')) => match chars.next() {
                    Some((_, '\n')) => {
                        let rest = chars.as_str();
                        let skipped = rest.len() - rest.trim_start().len();
                        chars.by_ref().take(rest[..skipped].chars().count()).for_each(drop);
                    }
                    Some((_, 'n')) => literal.push('\n'),
                    Some((_, other)) => literal.push(other),
                    None => break from.len(),
                },
                Some((_, other)) => literal.push(other),
                None => break from.len(),
            }
        };
        // Examples of the help are executed by the shell of the reader, not printed as advice.
        if !before.trim_end().ends_with("after_help =") && !before.trim_end().ends_with("after_help = \"\\") {
            literals.push(literal);
        }
        rest = &from[end.min(from.len())..];
    }
    literals
}

/// Returns the commands in a literal, each up to the punctuation after it.
fn commands(literal: &str) -> Vec<String> {
    let mut found = Vec::new();
    for program in PROGRAMS {
        for (at, _) in literal.match_indices(&format!("{program} ")) {
            let is_word = literal[..at]
                .chars()
                .next_back()
                .is_none_or(|c| !c.is_alphanumeric() && !"-_/.@".contains(c));
            let end =
                literal[at..].find(['`', ';', ',', '(', ')', '\n']).map_or(literal.len(), |end| at + end);
            if is_word {
                found.push(literal[at..end].trim().to_owned());
            }
        }
    }
    found
}

fn sources(directory: &Path, all: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match path.is_dir() {
            true => sources(&path, all),
            false if name.ends_with(".rs") && !name.contains("tests") => all.push(path),
            false => {}
        }
    }
}

/// Returns all commands in the messages of the tools and of apps.
fn printed() -> BTreeSet<String> {
    let mut files = Vec::new();
    for name in
        ["cli", "isolate", "trace", "bench", "analysis", "supervise", "bridge", "process", "files", "report"]
    {
        sources(&cargo::root().join(format!("crates/punctual-{name}/src")), &mut files);
    }
    sources(&cargo::root().join("crates/punctual/src"), &mut files);
    assert!(files.len() > 300, "{} files", files.len());
    let texts = files.iter().map(|file| fs::read_to_string(file).unwrap());
    texts.flat_map(|source| literals(&source)).flat_map(|literal| commands(&literal)).collect()
}

/// Returns whether a command is that of an entry, with all of its options.
fn is_entry(command: &str, entry: &str) -> bool {
    let Some(rest) = command.strip_prefix(entry) else { return false };
    // Options after the entry would not be rehearsed.
    !rest.split_whitespace().any(|word| word.starts_with('-') && word.len() > 1 && word != "--")
}

#[test]
fn every_command_of_a_message_has_a_rehearsal() {
    let printed = printed();
    let missing: Vec<_> =
        printed.iter().filter(|command| !TABLE.iter().any(|(entry, _)| is_entry(command, entry))).collect();
    assert!(missing.is_empty(), "add to the table of this test: {missing:#?}");
    let unused = TABLE.iter().filter(|(entry, _)| !printed.iter().any(|command| is_entry(command, entry)));
    let unused: Vec<_> = unused.map(|(entry, _)| entry).collect();
    assert!(unused.is_empty(), "no message prints {unused:#?}");
}

#[test]
fn every_rehearsal_succeeds() {
    let scratch = Scratch::new("messages");
    crate::standard_output::write_trace(&scratch, 20);
    fs::copy(cargo::root().join("docs/tasks.toml"), scratch.file("tasks.toml")).unwrap();
    let directory = program().parent().unwrap().to_owned();
    let path = std::env::join_paths(
        [directory].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let path = path.unwrap();
    for (entry, script) in TABLE {
        let program = entry.split(' ').next().unwrap();
        if !matches!(program, "punctual" | "ulimit" | "cargo") && !is_installed(program) {
            skip(Need::Tool(program), entry);
            continue;
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).env("PATH", &path).current_dir(&scratch.0).stdin(Stdio::null());
        let output = shell.output_within(TEST_LIMIT).unwrap();
        let output_text = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{entry}: {script}: {output_text}");
    }
}

/// The remedies of the doctor, on every recorded machine: a shell accepts each, and `punctual` its
/// own options.
#[test]
fn every_remedy_of_the_doctor_can_be_parsed() {
    let machines = cargo::root().join("crates/punctual-isolate/tests/machines");
    let mut remedies = BTreeSet::new();
    for entry in fs::read_dir(machines).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let output =
            punctual(&["doctor", "--json", "--machine"]).arg(&path).output_within(TEST_LIMIT).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        for finding in report["findings"].as_array().unwrap() {
            let fixes = finding["fixes"].as_array().unwrap().iter();
            remedies.extend(fixes.map(|fix| fix["command"].as_str().unwrap().to_owned()));
        }
    }
    assert!(remedies.len() > 50, "{} remedies", remedies.len());
    for remedy in remedies.iter().filter(|remedy| remedy.starts_with("punctual ")) {
        // `--help` before the command that it would run.
        let options = remedy.split(" -- ").next().unwrap();
        let words: Vec<&str> = options.split_whitespace().skip(1).chain(["--help"]).collect();
        let output = punctual(&words).output_within(TEST_LIMIT).unwrap();
        assert!(output.status.success(), "{remedy}: {}", text(&output.stderr));
    }
}
