//! `punctual new`: what it makes, and that it works.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::{Scratch, contents, punctual, text};

fn new(arguments: &[&str], directory: &Path) -> Command {
    let mut command = punctual(&["new"]);
    command.args(arguments).current_dir(directory);
    command
}

/// The root of this working copy.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("it has a workspace").to_owned()
}

#[test]
fn makes_a_crate_of_each_template() {
    let scratch = Scratch::new("new");
    for template in ["plain", "gimbal"] {
        let name = format!("my-{template}");
        let output = new(&[&name, "--template", template], &scratch.0).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains(&format!("cd {name} && cargo test")));
        let directory = scratch.file(&name);
        for (path, bytes) in contents(&directory) {
            let content = text(&bytes);
            assert!(!content.contains('@'), "{}: {content}", path.display());
        }
        let manifest = fs::read_to_string(directory.join("Cargo.toml")).unwrap();
        assert!(
            manifest.contains(&format!("name = \"{name}\"")) && manifest.contains("punctual = \""),
            "{manifest}"
        );
        let unit = fs::read_to_string(directory.join(format!("{name}.service"))).unwrap();
        assert!(unit.contains(&format!("ExecStart=/usr/local/bin/{name}\n")), "{unit}");
    }
}

#[test]
fn touches_nothing_that_is_there() {
    let scratch = Scratch::new("new-there");
    fs::create_dir(scratch.file("mine")).unwrap();
    fs::write(scratch.file("mine/work"), "mine").unwrap();
    for (arguments, why) in [
        (&["mine"][..], "is there already"),
        (&["no/such"], "does not exist"),
        (&["2x"], "cannot be the name of a crate"),
        (&["punctual"], "the name of another crate"),
        (&["ours", "--punctual", "mine"], "neither a crate nor crates/punctual"),
        (&["ours", "--template", "none"], "possible values: plain, gimbal"),
    ] {
        let output = new(arguments, &scratch.0).output().unwrap();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(error.starts_with("error: ") && error.contains(why), "{arguments:?}: {error}");
    }
    assert_eq!(contents(&scratch.0), [(scratch.file("mine/work"), b"mine".to_vec())]);
}

/// With this working copy's library, and the versions of its other dependencies, so that nothing is fetched.
#[test]
#[ignore = "takes half a minute of a CPU: `cargo test -p punctual-cli --test new -- --ignored`, as CI does"]
fn what_it_makes_builds_without_a_warning_and_passes_its_tests() {
    let scratch = Scratch::new("new-build");
    for template in ["plain", "gimbal"] {
        let name = format!("my-{template}");
        let from = root();
        let arguments = [&name, "--template", template, "--punctual", from.to_str().unwrap()];
        assert!(new(&arguments, &scratch.0).status().unwrap().success());
        let directory = scratch.file(&name);
        fs::copy(from.join("Cargo.lock"), directory.join("Cargo.lock")).unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["test", "--offline", "--quiet"]).current_dir(&directory);
        cargo.env("CARGO_TARGET_DIR", from.join("target/templates")).env("RUSTFLAGS", "-D warnings");
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
        let output = cargo.output().unwrap();
        let (out, error) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{template}: {out}{error}");
        assert!(out.contains("test result: ok."), "{out}");
    }
}
