//! `punctual completions` and `punctual man`.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use punctual_process::child::{BoundedCommand, TEST_LIMIT};

use crate::support::{Scratch, punctual, text};
use test_skip::{Need, skip};

#[test]
fn bash_completes_commands_and_their_options() {
    let output = punctual(&["completions", "bash"]).output_within(TEST_LIMIT).unwrap();
    assert!(output.status.success());
    let scratch = Scratch::new("completions");
    let script = scratch.file("script");
    std::fs::write(&script, &output.stdout).unwrap();
    let complete = |words: &str, at: usize| {
        let line = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD={at}; _punctual punctual \"${{COMP_WORDS[{at}]}}\" ''; echo \"${{COMPREPLY[*]}}\"",
            script.display()
        );
        let bash =
            Command::new("bash").args(["--norc", "-c", &line]).stdin(Stdio::null()).output_within(TEST_LIMIT);
        bash.map(|output| text(&output.stdout))
    };
    let Ok(commands) = complete("punctual t", 1) else {
        return skip(Need::Tool("bash"), "completion");
    };
    assert!(commands.contains("top") && commands.contains("trace"), "{commands}");
    let options = complete("punctual top --pro", 2).unwrap();
    assert!(options.contains("--prometheus"), "{options}");
    let suites = complete("punctual bench l", 2).unwrap();
    assert!(suites.contains("latency"), "{suites}");
}

#[test]
fn bash_completes_names_of_tasks_of_files() {
    let output = punctual(&["completions", "bash"]).output_within(TEST_LIMIT).unwrap();
    let scratch = Scratch::new("task-names");
    let script = scratch.file("script");
    std::fs::write(&script, &output.stdout).unwrap();
    let fifo = scratch.file("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    for (words, at, expected) in [
        (format!("trace report {docs}/threads.dat --task v"), 5, "vision"),
        (format!("rta {docs}/gimbal-model.json --without p"), 4, "position"),
        (format!("rta {docs}/tasks.toml --without ''"), 4, "sample"),
        ("trace record --task zzz".into(), 4, ""),
        // Which has no writer.
        (format!("trace report {} --task zzz", fifo.display()), 5, ""),
        // Every other flag as before.
        ("trace report --fut".into(), 3, "--futex"),
    ] {
        let line = format!(
            "source {}; COMP_WORDS=({} {words}); COMP_CWORD={at}; _punctual_or_task \"${{COMP_WORDS[0]}}\" \"${{COMP_WORDS[{at}]}}\" \
             \"${{COMP_WORDS[{at}-1]}}\"; echo \"${{COMPREPLY[*]}}\"",
            script.display(),
            env!("CARGO_BIN_EXE_punctual"),
        );
        let bash =
            Command::new("bash").args(["--norc", "-c", &line]).stdin(Stdio::null()).output_within(TEST_LIMIT);
        let Ok(output) = bash else { return skip(Need::Tool("bash"), "completion") };
        let completed = text(&output.stdout);
        let is_complete = match expected {
            "" => completed.trim().is_empty(),
            name => completed.split_whitespace().any(|word| word == name),
        };
        assert!(is_complete, "{words}: {completed}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let scratch = Scratch::new("man");
    std::fs::write(scratch.file("victim"), "a file").unwrap();
    std::os::unix::fs::symlink("victim", scratch.file("punctual.1")).unwrap();
    let made = punctual(&["man", scratch.0.to_str().unwrap()]).status_within(TEST_LIMIT).unwrap();
    assert!(made.success());
    let metadata = std::fs::symlink_metadata(scratch.file("punctual.1")).unwrap();
    assert!(metadata.is_file(), "the link is replaced");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o644, "other users read it");
    assert_eq!(std::fs::read_to_string(scratch.file("victim")).unwrap(), "a file");
    for page in ["punctual.1", "punctual-top.1", "punctual-trace-record.1", "punctual-new.1"] {
        let content =
            std::fs::read_to_string(scratch.file(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
        assert!(content.contains(".SH SYNOPSIS"), "{page}: {content}");
    }
    let output = punctual(&["man", "/no/such/directory"]).output_within(TEST_LIMIT).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("/no/such/directory"));
}
