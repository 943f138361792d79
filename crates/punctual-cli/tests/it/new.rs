//! `punctual new`: the created files, and that they work.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use punctual_process::child::{BoundedCommand, TEST_LIMIT};
use test_skip::{Need, skip};

use crate::support::{Scratch, contents, punctual, text};

fn new(arguments: &[&str], directory: &Path) -> Command {
    let mut command = punctual(&["new"]);
    command.args(arguments).current_dir(directory);
    command
}

/// Returns the root of this working copy.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("it has a workspace").to_owned()
}

#[test]
fn creates_crate_from_each_template() {
    let scratch = Scratch::new("new");
    for template in ["plain", "gimbal", "ros2", "raspi4b"] {
        let name = format!("my-{template}");
        let output = new(&[&name, "--template", template], &scratch.0).output_within(TEST_LIMIT).unwrap();
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
        if template == "raspi4b" {
            continue;
        }
        let unit = fs::read_to_string(directory.join(format!("{name}.service"))).unwrap();
        assert!(unit.contains(&format!("ExecStart=/usr/local/bin/{name}\n")), "{unit}");
    }
}

#[test]
fn unit_passes_systemd_verify() {
    let scratch = Scratch::new("new-unit");
    let output = new(&["my-app"], &scratch.0).output_within(TEST_LIMIT).unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let unit = fs::read_to_string(scratch.file("my-app/my-app.service")).unwrap();
    for line in [
        "Type=notify",
        "WatchdogSec=3",
        "StateDirectory=my-app",
        "Wants=network-online.target",
        "After=network-online.target",
    ] {
        assert!(unit.lines().any(|it| it == line), "{line}\n{unit}");
    }
    // The program is not installed here.
    let unit = unit.replace("ExecStart=/usr/local/bin/my-app", "ExecStart=/bin/true");
    let verify = |name: &str, unit: &str| {
        let path = scratch.file(name);
        fs::write(&path, unit).unwrap();
        let mut command = Command::new("systemd-analyze");
        let output = command.args(["verify", "--man=no"]).arg(&path).output_within(TEST_LIMIT);
        output.map(|output| format!("{}{}", text(&output.stdout), text(&output.stderr)))
    };
    let Ok(complaints) = verify("good.service", &unit) else {
        return skip(Need::Tool("systemd-analyze"), "the unit of a new app");
    };
    assert_eq!(complaints, "");
    let bad = verify("bad.service", &unit.replace("WatchdogSec=3", "WatchdogSec=soon")).unwrap();
    assert!(bad.contains("Failed to parse") && bad.contains("soon"), "{bad}");
}

#[test]
fn keeps_existing_files() {
    let scratch = Scratch::new("new-there");
    fs::create_dir(scratch.file("mine")).unwrap();
    fs::write(scratch.file("mine/work"), "mine").unwrap();
    for (arguments, why) in [
        (&["mine"][..], "already exists"),
        (&["no/such"], "does not exist"),
        (&["2x"], "cannot be the name of a crate"),
        (&["punctual"], "the name of another crate"),
        (&["fn"], "fn is a reserved name; choose a different one, such as my-fn"),
        (&["build"], "reserved"),
        (&["ours", "--path", "mine"], "not a checkout of Punctual"),
        (&["ours", "--template", "none"], "possible values: plain, gimbal, ros2, raspi"),
    ] {
        let output = new(arguments, &scratch.0).output_within(TEST_LIMIT).unwrap();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(error.starts_with("error: ") && error.contains(why), "{arguments:?}: {error}");
    }
    let mut invalid = punctual(&["new"]);
    invalid.arg(OsStr::from_bytes(b"caf\xe9")).current_dir(&scratch.0);
    let error = text(&invalid.output_within(TEST_LIMIT).unwrap().stderr);
    assert!(error.starts_with("error: \"caf\u{fffd}\" cannot be the name of a crate; "), "{error}");
    assert_eq!(contents(&scratch.0), [(scratch.file("mine/work"), b"mine".to_vec())]);
}

/// `cargo xtask bare test` builds and runs these crates in QEMU.
#[test]
fn selects_target_and_features_of_each_board() {
    let scratch = Scratch::new("new-bare");
    for (board, target) in [
        ("raspi2b", "armv7a-none-eabihf"),
        ("raspi3b", "aarch64-unknown-none"),
        ("raspi4b", "aarch64-unknown-none"),
        ("virt-a7", "armv7a-none-eabihf"),
        ("virt-a72", "aarch64-unknown-none"),
    ] {
        let name = format!("my-{board}");
        let output = new(&[&name, "--template", board], &scratch.0).output_within(TEST_LIMIT).unwrap();
        assert!(output.status.success());
        let printed = text(&output.stdout);
        assert!(printed.contains(&format!("`rustup target add {target}`\nnext: cd ")), "{printed}");
        let file = |path: &str| fs::read_to_string(scratch.file(&name).join(path)).unwrap();
        let manifest = file("Cargo.toml");
        let library = root().join("bare/punctual-bare");
        let line =
            format!("punctual-bare = {{ path = \"{}\", features = [\"{board}\"] }}", library.display());
        assert!(manifest.contains(&line), "{line} is missing in {manifest}");
        assert!(file(".cargo/config.toml").contains(&format!("target = \"{target}\"")));
    }
}

#[test]
fn depends_on_own_checkout() {
    let scratch = Scratch::new("new-checkout");
    let output = new(&["mine"], &scratch.0).output_within(TEST_LIMIT).unwrap();
    let checkout = root();
    assert!(
        text(&output.stdout).contains(&format!("depends on the checkout {}\n", checkout.display())),
        "{}",
        text(&output.stdout)
    );
    let manifest = fs::read_to_string(scratch.file("mine/Cargo.toml")).unwrap();
    let library = checkout.join("crates/punctual");
    assert!(manifest.contains(&format!("punctual = {{ path = \"{}\" }}", library.display())), "{manifest}");
}

/// Uses this checkout's libraries and a lock file of it, so that nothing is downloaded.
#[test]
#[ignore = "takes half a minute of a CPU: `cargo test -p punctual-cli --test it -- --ignored new_package_builds`"]
fn new_package_builds_without_warnings_and_passes_its_tests() {
    builds("plain");
    builds("gimbal");
    builds("ros2");
}

/// Creates a crate, and runs its tests, with warnings as errors.
fn builds(template: &str) {
    let scratch = Scratch::new(&format!("new-build-{template}"));
    let name = format!("my-{template}");
    let from = root();
    let arguments = [&name, "--template", template];
    assert!(new(&arguments, &scratch.0).status_within(TEST_LIMIT).unwrap().success());
    let directory = scratch.file(&name);
    fs::copy(from.join("Cargo.lock"), directory.join("Cargo.lock")).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--offline", "--quiet"]).current_dir(&directory);
    cargo.env("CARGO_TARGET_DIR", from.join("target/templates")).env("RUSTFLAGS", "-D warnings");
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
    let output = cargo.output_within(TEST_LIMIT).unwrap();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{template}: {out}{error}");
    assert!(out.contains("test result: ok."), "{out}");
}
