//! Runs that end early, and files that cannot be written.

use punctual::Config;
use punctual_process::child::{BoundedCommand, TEST_LIMIT};

use crate::process;
use crate::profile::{File, assert_has};

#[punctual::app(main = false, profile)]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        works::spawn().unwrap();
        panics::spawn_after(5.millis()).unwrap();
        never::spawn_after(10.secs()).unwrap();
        (Shared {}, Local {})
    }

    #[task(priority = 2, execution = 1.millis())]
    fn works(_: works::Context) {}

    #[task]
    fn panics(_: panics::Context) {
        punctual::spend(2.millis());
        panic!("on purpose");
    }

    #[task]
    fn never(_: never::Context) {}
}

mod sleeper {
    #[punctual::app(main = false, profile)]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            sleeps::spawn().unwrap();
            (Shared {}, Local {})
        }

        #[allow(deprecated, reason = "the profile shows how long a job was suspended")]
        #[task(deadline = 5.millis())]
        fn sleeps(_: sleeps::Context) {
            std::thread::sleep(std::time::Duration::from_millis(30));
            punctual::shutdown();
        }
    }

    pub(super) use app::run;
}

mod stuck {
    #[punctual::app(main = false)]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[idle]
        fn idle(_: idle::Context) -> ! {
            punctual::shutdown();
            loop {
                std::thread::park();
            }
        }
    }

    pub(super) use app::run;
}

#[test]
#[ignore = "a program that the other tests run"]
fn program() {
    process::exit(punctual::export::main(|config| app::run(config.virtual_time())));
}

#[test]
#[ignore = "a program that the other tests run"]
fn program_that_does_not_end() {
    process::exit(punctual::export::main(stuck::run));
}

/// Returns the exit code of `program` with this file as its profile, and its output.
fn ended(program: &str, path: &std::path::Path) -> (Option<i32>, String) {
    let mut command = process::program(&format!("profile::{program}"));
    let output =
        command.env("PUNCTUAL_PROFILE", path).output_within(TEST_LIMIT).expect("the program can be started");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn panicking_run_writes_marked_profile() {
    let file = File::new("panic");
    let (code, printed) = ended("ends::program", file.path());
    assert_eq!(code, Some(101), "{printed}");
    assert_has(&file.task("works"), &["\"jobs\": 1, \"execution_max_ns\": 1000000"]);
    // The panicking job counts as one, as in the report.
    assert_has(&file.task("panics"), &["\"jobs\": 1, \"execution_max_ns\": 2000000"]);
    assert_has(&file.task("never"), &["\"jobs\": 0, \"execution_max_ns\": null"]);
    let expected = ["covers only part of a run: `panics` panicked: on purpose", "has no data on `never`"];
    assert_has(&printed, &expected);
}

#[test]
fn replaces_planted_link_without_following() {
    let (link, target) = (File::new("link"), File::new("target"));
    std::os::unix::fs::symlink(target.path(), link.path()).unwrap();
    let (code, printed) = ended("ends::program", link.path());
    assert_eq!(code, Some(101), "{printed}");
    assert_has(&link.task("works"), &["\"jobs\": 1"]);
    assert!(!target.path().exists(), "nothing is created behind the link");
    assert!(std::fs::symlink_metadata(link.path()).unwrap().is_file());
}

#[test]
fn reports_profile_lost_at_process_exit() {
    let file = File::new("stuck");
    let (_, printed) = ended("ends::program_that_does_not_end", file.path());
    assert_has(&printed, &["idle does not return", "no profile is written"]);
    assert!(!file.path().exists());
}

#[test]
fn unwritable_file_fails_before_start() {
    let config = Config::new().virtual_time().profile("/nowhere/profile.json");
    let error = app::run(config).expect_err("there is no such directory");
    assert_eq!(error.exit_code(), 2);
    assert_has(&error.to_string(), &["/nowhere/profile.json", "PUNCTUAL_PROFILE", "Config::profile"]);
}

#[test]
fn sleep_is_not_execution() {
    let _alone = crate::alone();
    let file = File::new("sleeper");
    let report = sleeper::run(Config::new().profile(file.path())).expect("nothing is asked for");
    let text = file.task("sleeps");
    let number = |name: &str| -> u64 {
        let (_, rest) = text.split_once(&format!("\"{name}\": ")).expect("the figure is there");
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().expect("it is known")
    };
    let (executed, suspended) = (number("execution_max_ns"), number("suspension_max_ns"));
    assert!(number("suspensions_most_per_job") >= 1 && suspended > executed, "{text}");
    // The sleep includes the time in which the thread enters and leaves the kernel.
    assert!((30_000_000..=number("response_max_ns")).contains(&(executed + suspended)), "{text}");
    // Report and profile have one count of misses.
    if cfg!(feature = "monitoring") {
        let misses = report.task("sleeps").expect("every task is in the report").misses;
        assert_eq!((misses, number("deadline_misses")), (1, 1), "{text}");
    }
    // The machine's costs are known, too.
    assert!(!file.text().contains("\"lock_ns\": null"), "{}", file.text());
}
