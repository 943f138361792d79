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
    for template in ["plain", "gimbal", "ros2", "bare"] {
        let name = format!("my-{template}");
        let output = new(&[&name, "--template", template], &scratch.0).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains(&format!("cd {name} && cargo ")));
        let directory = scratch.file(&name);
        for (path, bytes) in contents(&directory) {
            let content = text(&bytes);
            assert!(!content.contains('@'), "{}: {content}", path.display());
        }
        let manifest = fs::read_to_string(directory.join("Cargo.toml")).unwrap();
        assert!(
            manifest.contains(&format!("name = \"{name}\"")) && manifest.contains("\npunctual = "),
            "{manifest}"
        );
        if template == "bare" {
            continue;
        }
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
        (&["ours", "--board", "raspi3b"], "add --template bare"),
        (&["ours", "--template", "none"], "possible values: plain, gimbal, ros2, bare"),
    ] {
        let output = new(arguments, &scratch.0).output().unwrap();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(error.starts_with("error: ") && error.contains(why), "{arguments:?}: {error}");
    }
    assert_eq!(contents(&scratch.0), [(scratch.file("mine/work"), b"mine".to_vec())]);
}

/// That of `bare` is what `bare/template` is, which is built and run for each board where there is QEMU.
#[test]
fn the_crate_for_a_board_is_that_of_the_other_template() {
    let (scratch, root) = (Scratch::new("new-bare"), root());
    let theirs = |path: &str| fs::read_to_string(root.join("bare/template").join(path)).unwrap();
    for board in ["raspi2b", "raspi3b", "raspi4b", "virt-a7", "virt-a72"] {
        let name = format!("my-{board}");
        let status = new(&[&name, "--template", "bare", "--board", board], &scratch.0).status().unwrap();
        assert!(status.success());
        let ours = |path: &str| fs::read_to_string(scratch.file(&name).join(path)).unwrap();
        assert_eq!(ours("src/main.rs"), theirs("src/main.rs"));
        // Whatever stands before and after the conditions, and one branch of each.
        let mut rest = ours(".cargo/config.toml");
        let config = theirs(".cargo/config.toml").replace("{{board}}", board);
        let mut parts: Vec<&str> = config.split("{%").map(|part| part.rsplit("%}").next().unwrap()).collect();
        // One may begin as another does.
        parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
        for part in parts {
            match rest.find(part) {
                Some(at) => rest.replace_range(at..at + part.len(), ""),
                None => assert!(!part.contains('\n'), "{part} is not in {rest}"),
            }
        }
        assert_eq!(rest.trim(), "", "{board}");
        let manifest = ours("Cargo.toml");
        let after = |text: &str| text[text.find("[features]").expect("it has them")..].trim_end().to_owned();
        let own = "\n\n# It is a workspace of its own, wherever it lies.\n[workspace]";
        assert_eq!(after(&manifest), after(&theirs("Cargo.toml")) + own);
        assert!(
            manifest
                .contains(&format!("punctual-bare = {{ version = \"0.1.0\", features = [\"{board}\"] }}"))
        );
    }
}

/// ROS 2 is much to build: `cargo xtask transports` does.
#[test]
#[ignore = "takes many minutes: `cargo xtask transports` runs it"]
fn the_node_of_ros_2_builds_without_a_warning_and_passes_its_tests() {
    builds("ros2");
}

/// With this working copy's library, and the versions of its other dependencies, so that nothing is fetched.
#[test]
#[ignore = "takes half a minute of a CPU: `cargo test -p punctual-cli --test new -- --ignored what_it_makes`, as CI does"]
fn what_it_makes_builds_without_a_warning_and_passes_its_tests() {
    builds("plain");
    builds("gimbal");
}

/// Makes a crate, and runs its tests, with warnings as errors.
fn builds(template: &str) {
    let scratch = Scratch::new(&format!("new-build-{template}"));
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
