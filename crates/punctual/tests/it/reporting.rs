//! Destination of the report of a run: a terminal, a pipe, a file, or none.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::fd::FromRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::process;
use punctual::Config;
use punctual::config::Reporting;
use punctual_process::child::{BoundedChild, BoundedCommand, TEST_LIMIT};

/// Start of every report.
const HEAD: &str = "app: shut down after";

/// An app that ends by itself, with this option in its attribute in addition to `main = false`.
macro_rules! app {
    ($name:ident $(, $key:ident = $value:literal)*) => {
        mod $name {
            #[punctual::app(main = false $(, $key = $value)*)]
            mod app {
                #[shared]
                struct Shared {}

                #[local]
                struct Local {}

                #[init]
                fn init(_: init::Context) -> (Shared, Local) {
                    only::spawn().unwrap();
                    (Shared {}, Local {})
                }

                #[task]
                fn only(_: only::Context) {
                    punctual::shutdown();
                }
            }

            pub(super) use app::run;
        }
    };
}

app!(plain);
app!(declared, report = "always");

#[test]
#[ignore = "a program that the other tests run"]
fn program() {
    process::exit(punctual::export::main(plain::run));
}

#[test]
#[ignore = "a program that the other tests run"]
fn program_declared() {
    process::exit(punctual::export::main(declared::run));
}

#[test]
#[ignore = "a program that the other tests run"]
fn async_choices() {
    process::exit(punctual::export::main(|config| declared::run(config.report(Reporting::Never))));
}

#[test]
#[ignore = "a program that the other tests run"]
fn program_with_a_main_of_its_own() {
    plain::run(Config::from_env()).expect("the app starts");
}

fn command(program: &str, report: Option<&str>) -> Command {
    let mut command = process::program(&format!("reporting::{program}"));
    command.env("PUNCTUAL_PORT", "virtual").stdin(Stdio::null()).stdout(Stdio::null());
    report.map(|report| command.env("PUNCTUAL_REPORT", report));
    command
}

/// Returns the program's output to a standard error that is a pipe.
fn printed_to_pipe(program: &str, report: Option<&str>) -> String {
    let output = command(program, report).output_within(TEST_LIMIT).expect("the program can be started");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).expect("it is a text")
}

/// Returns the program's output to a standard error that is a terminal.
fn printed_to_terminal(program: &str, report: Option<&str>) -> String {
    let (mut master, slave) = terminal();
    let mut command = command(program, report);
    let mut child = command.stderr(slave).spawn().expect("the program can be started");
    // Dropping the command closes the last of our ends, so that reading ends with the program.
    drop(command);
    let (mut printed, mut bytes) = (Vec::new(), [0; 4096]);
    while let Ok(length @ 1..) = master.read(&mut bytes) {
        printed.extend_from_slice(&bytes[..length]);
    }
    assert!(child.status_within(TEST_LIMIT).expect("it is our child").success());
    String::from_utf8(printed).expect("it is a text").replace("\r\n", "\n")
}

/// Both ends of a pseudo-terminal.
fn terminal() -> (File, File) {
    let mut name = [0; 64];
    // SAFETY: the descriptor belongs to this function, and the name fits into the declared buffer.
    let master = unsafe {
        let master = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
        assert!(master >= 0, "{}", std::io::Error::last_os_error());
        let master = File::from_raw_fd(master);
        let fd = std::os::fd::AsRawFd::as_raw_fd(&master);
        assert_eq!(libc::grantpt(fd), 0);
        assert_eq!(libc::unlockpt(fd), 0);
        assert_eq!(libc::ptsname_r(fd, name.as_mut_ptr(), name.len()), 0);
        master
    };
    let name = name.map(|byte| byte as u8);
    let name = std::ffi::CStr::from_bytes_until_nul(&name).expect("it is a string of C's");
    let path = Path::new(name.to_str().expect("it is a text"));
    let slave = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(path);
    (master, slave.expect("a terminal that was just made can be opened"))
}

#[test]
fn program_reports_only_to_terminal() {
    let printed = printed_to_terminal("program", None);
    let note = match cfg!(feature = "monitoring") {
        true => "no job took any time: in virtual time",
        false => "was not measured, because",
    };
    assert!(printed.contains(HEAD) && printed.contains(note), "{printed}");
    assert!(printed.contains("\nonly "), "{printed}");
    assert_eq!(printed_to_pipe("program", None), "");
}

#[test]
fn user_chooses_shape() {
    for one in ["always", "1"] {
        assert!(printed_to_pipe("program", Some(one)).contains(HEAD));
    }
    for none in ["never", "0"] {
        assert_eq!(printed_to_terminal("program", Some(none)), "");
    }
    assert_eq!(printed_to_pipe("program", Some("auto")), "");
}

#[test]
fn program_overrides_environment_overrides_attribute() {
    assert!(printed_to_pipe("program_declared", None).contains(HEAD));
    assert_eq!(printed_to_pipe("program_declared", Some("never")), "");
    assert_eq!(printed_to_pipe("async_choices", Some("always")), "");
}

#[test]
fn library_call_reports_only_on_request() {
    assert_eq!(printed_to_terminal("program_with_a_main_of_its_own", None), "");
    assert!(printed_to_pipe("program_with_a_main_of_its_own", Some("always")).contains(HEAD));
}

#[test]
fn names_written_file() {
    let directory = std::env::temp_dir().join(format!("punctual-reporting-{}", std::process::id()));
    fs::create_dir(&directory).expect("a directory can be made");
    let path = directory.join("report.txt");
    let mut command = command("program", Some("./report.txt"));
    let output =
        command.current_dir(&directory).output_within(TEST_LIMIT).expect("the program can be started");
    let path = path.canonicalize().expect("the report was written");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        format!("punctual: the report is in {}\n", path.display())
    );
    assert!(fs::read_to_string(&path).expect("it can be read").contains(HEAD));
    fs::remove_dir_all(&directory).expect("it is ours");
}

#[test]
fn unwritable_file_does_not_fail_app() {
    let printed = printed_to_pipe("program", Some("/nowhere/report.txt"));
    assert!(
        printed.starts_with("punctual: the report could not be written to /nowhere/report.txt: "),
        "{printed}"
    );
}

#[test]
fn rejects_invalid_value() {
    let output =
        command("program", Some("report.txt")).output_within(TEST_LIMIT).expect("the program can be started");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && printed.contains("./report.txt"), "{printed}");
}
