//! The declarations of an app, as data and as a file.

#[path = "../../../examples/partitions.rs"]
mod partitions;

mod kinds;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;
use punctual::Config;
use punctual_process::child::{BoundedCommand, TEST_LIMIT};

/// The model of the example `partitions`.
const EXPECTED: &str = include_str!("partitions.json");

mod other {
    /// An app that prints when it runs.
    #[punctual::app(main = false)]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            println!("init ran");
            (Shared {}, Local {})
        }
    }

    pub(super) use app::run;
}

#[test]
#[ignore = "a program that the other tests run"]
fn program() {
    process::exit(partitions::main());
}

#[test]
#[ignore = "a program that the other tests run"]
fn program_with_a_main_of_its_own() {
    let ended = other::run(Config::from_env().virtual_time());
    println!("run returned");
    if let Err(error) = ended {
        eprintln!("{error}");
        std::process::exit(error.exit_code().into());
    }
}

fn command(program: &str, path: &Path) -> Command {
    let mut command = process::program(&format!("model::{program}"));
    command.env("PUNCTUAL_MODEL", path).env("PUNCTUAL_PORT", "virtual");
    command
}

/// Returns the path of a file for this test, which does not exist.
fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("punctual-model-{}-{name}", std::process::id()))
}

#[test]
fn writes_model_of_example() {
    let path = file("example");
    let output = command("program", &path).output_within(TEST_LIMIT).expect("the program can be started");
    assert!(output.status.success(), "{output:?}");
    let written = fs::read_to_string(&path).expect("the model was written");
    fs::remove_file(&path).expect("it is ours");
    assert_eq!(written, EXPECTED, "compare with tests/it/model/partitions.json");
    // It did not run.
    assert!(!String::from_utf8_lossy(&output.stdout).contains("sample 1"), "{output:?}");
}

#[test]
fn ends_instead_of_run_with_status_0() {
    let path = file("own-main");
    let output = command("program_with_a_main_of_its_own", &path)
        .output_within(TEST_LIMIT)
        .expect("it can be started");
    assert!(output.status.success(), "{output:?}");
    fs::remove_file(&path).expect("the model was written");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(!printed.contains("init ran") && !printed.contains("run returned"), "{printed}");
}

#[test]
fn unwritable_file_error_names_remedy() {
    for (path, advice) in [("/nowhere/model.json", "a file that can be written"), ("", "the path of a file")]
    {
        for program in ["program", "program_with_a_main_of_its_own"] {
            let output =
                command(program, Path::new(path)).output_within(TEST_LIMIT).expect("it can be started");
            let printed = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{printed}");
            assert!(printed.contains("PUNCTUAL_MODEL") && printed.contains(advice), "{printed}");
            assert!(!String::from_utf8_lossy(&output.stdout).contains("init ran"), "{output:?}");
        }
    }
}
