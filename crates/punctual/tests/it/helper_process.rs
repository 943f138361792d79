//! Helper processes: no submitted request is lost if either side dies, and jobs never wait for
//! them.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::process;
use punctual::background::{HelperProcess, Requests};
use punctual_process::child::{BoundedCommand, TEST_LIMIT};
use punctual_process::scheduling::{Scheduling, set_policy};
use test_skip::{Need, skip};

/// File in which the helper records its requests.
const RECORD: &str = "RECORD";
/// Maximum number of waiting requests.
const PLACES: usize = 64;
type Helper = HelperProcess<u64, PLACES>;

/// A file that is removed on drop.
struct Record(PathBuf);

impl Record {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("punctual-helper-{name}-{}", std::process::id())))
    }

    /// Returns the command of the helper, with the path of the record.
    fn helper(&self, program: &str) -> Command {
        let mut command = process::program(&format!("helper_process::programs::{program}"));
        command.env(RECORD, &self.0).stdout(Stdio::null());
        command
    }

    fn lines(&self) -> Vec<String> {
        fs::read_to_string(&self.0).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Waits for the last line that a helper writes, and returns the lines.
    fn ended(&self) -> Vec<String> {
        let begun = Instant::now();
        while self.lines().last().is_none_or(|line| line != "ended") {
            assert!(begun.elapsed() < process::LIMIT, "the helper goes on: {:?}", self.lines());
            std::thread::sleep(Duration::from_millis(1));
        }
        self.lines()
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn numbers(count: u64) -> Vec<String> {
    (0..count).map(|number| number.to_string()).chain(["ended".to_owned()]).collect()
}

#[test]
fn runs_all_calls_in_order_before_exit() {
    let record = Record::new("order");
    let mut helper = Helper::start(record.helper("helper")).unwrap();
    for number in 0..10 * PLACES as u64 {
        while helper.submit(number).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let process = helper.process();
    drop(helper);
    assert!(!fs::exists(format!("/proc/{process}")).unwrap(), "it was waited for");
    assert_eq!(record.lines(), numbers(10 * PLACES as u64));
}

#[test]
fn finishes_calls_after_kill() {
    let record = Record::new("killed");
    let ended = process::start(record.helper("app")).end();
    assert_eq!(ended.code, -libc::SIGKILL, "{}", ended.output);
    assert_eq!(record.ended(), numbers(PLACES as u64));
}

#[test]
fn reports_ended_helper_process() {
    let mut helper = Helper::start(Command::new("true")).unwrap();
    while helper.has_ended().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    for number in 0..PLACES as u64 {
        helper.submit(number).unwrap();
    }
    assert_eq!(helper.submit(7).unwrap_err().0, 7);
    let missing = Helper::start(Command::new("/no/such/program")).unwrap_err();
    assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn rejects_requests_of_other_app() {
    let refused = |mut command: Command| {
        let output = command.stdout(Stdio::piped()).output_within(TEST_LIMIT).unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let record = Record::new("refused");
    let mut command = record.helper("helper");
    command.stdin(Stdio::null());
    let said = refused(command);
    assert!(said.contains("standard input has no requests of an app (it is no memory)"), "{said}");

    drop(HelperProcess::<[u8; 3], 4>::start(record.helper("helper")).unwrap());
    assert!(record.lines()[0].contains("standard input has no requests of an app"), "{:?}", record.lines());
}

#[test]
fn inherits_no_real_time_policy() {
    let _alone = crate::alone();
    let record = Record::new("ordinary");
    let command = record.helper("policy");
    let starts = move || {
        let is_real_time = set_policy(libc::SCHED_FIFO, 1).is_ok();
        (is_real_time, Helper::start(command).unwrap())
    };
    let (is_real_time, helper) = std::thread::spawn(starts).join().unwrap();
    if !is_real_time {
        skip(Need::RealTime, "a policy to inherit");
    }
    drop(helper);
    assert_eq!(record.lines(), [libc::SCHED_OTHER.to_string()]);
}

mod programs {
    use std::io::Write;

    use super::*;

    fn record() -> fs::File {
        fs::File::create(std::env::var_os(RECORD).expect("the test says where")).unwrap()
    }

    #[test]
    #[ignore = "a program that the other tests run"]
    fn helper() {
        let mut record = record();
        match Requests::<u64, PLACES>::inherited() {
            Ok(requests) => requests.for_each(|number| writeln!(record, "{number}").unwrap()),
            Err(error) => {
                println!("{error}");
                writeln!(record, "{error}").unwrap();
            }
        }
        writeln!(record, "ended").unwrap();
    }

    #[test]
    #[ignore = "a program that the other tests run"]
    fn policy() {
        writeln!(record(), "{}", Scheduling::current().unwrap().policy()).unwrap();
    }

    /// Fills the ring of a helper, and is killed.
    #[test]
    #[ignore = "a program that the other tests run"]
    fn app() {
        let record = Record(std::env::var_os(RECORD).expect("the test says where").into());
        let mut helper = Helper::start(record.helper("helper")).unwrap();
        for number in 0..PLACES as u64 {
            helper.submit(number).unwrap();
        }
        // SAFETY: the call takes only a number.
        unsafe { libc::raise(libc::SIGKILL) };
    }
}
