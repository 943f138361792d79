//! Helper processes: none outlives its app's need for it, faults are counted, no submitted request
//! is lost if either side dies, and jobs never wait for them.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::process;
use punctual::background::{HelperCommand, HelperProcess, Requester, Requests, Resource, Restart};
use punctual_process::child::{BoundedChild, BoundedCommand, TEST_LIMIT};
use punctual_process::scheduling::{Scheduling, set_policy};
use test_skip::{Need, skip};

/// File in which the helper records its requests.
const RECORD: &str = "RECORD";
/// Number of requests after which a helper dies.
const DYING_AFTER: u64 = 16;
/// Maximum number of waiting requests.
const PLACES: usize = 64;
type Helper = Requester<u64, PLACES>;

/// A file that is removed on drop.
struct Record(PathBuf);

impl Record {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("punctual-helper-{name}-{}", std::process::id())))
    }

    /// Returns the command of a program, with the path of the record.
    fn program(&self, program: &str) -> Command {
        let mut command = process::program(&format!("helper_process::programs::{program}"));
        command.env(RECORD, &self.0).stdout(Stdio::null());
        command
    }

    /// Returns the command of a helper that gets as much time as the test.
    fn helper(&self, program: &str) -> HelperCommand {
        HelperCommand::new(self.program(program)).grace(process::LIMIT)
    }

    /// Returns the command of a shell that can write to `$RECORD`.
    fn shell(&self, script: &str) -> HelperCommand {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).env(RECORD, &self.0).stdin(Stdio::null()).stdout(Stdio::null());
        HelperCommand::new(command)
    }

    fn lines(&self) -> Vec<String> {
        fs::read_to_string(&self.0).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Waits for the last line that a helper writes, and returns the lines.
    fn ended(&self) -> Vec<String> {
        wait(|| self.lines().last().is_some_and(|line| line == "ended"));
        self.lines()
    }
}

/// Waits until a condition holds.
fn wait(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < process::LIMIT, "the condition never holds");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns `true` if there is such a process, waited for or not.
fn exists(process: u32) -> bool {
    fs::exists(format!("/proc/{process}")).unwrap()
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
    let process = helper.process().process().unwrap();
    drop(helper);
    assert!(!exists(process), "it was waited for");
    assert_eq!(record.lines(), numbers(10 * PLACES as u64));
}

#[test]
fn finishes_calls_after_kill() {
    let record = Record::new("killed");
    let ended = process::start(record.program("app")).end();
    assert_eq!(ended.code, -libc::SIGKILL, "{}", ended.output);
    assert_eq!(record.ended(), numbers(PLACES as u64));
}

#[test]
fn restarted_helper_continues_with_requests() {
    let record = Record::new("continues");
    let mut helper = Helper::start(record.helper("dying_helper")).unwrap();
    (0..PLACES as u64).for_each(|number| helper.submit(number).unwrap());
    wait(|| helper.process().report().starts > PLACES as u64 / DYING_AFTER);
    drop(helper);
    assert_eq!(record.lines(), numbers(PLACES as u64));
}

#[test]
fn full_queue_of_ended_helper_rejects_requests() {
    let record = Record::new("full");
    let mut helper = Helper::start(record.shell("exit 0")).unwrap();
    wait(|| helper.process().report().ends == 1);
    assert_eq!(helper.process().process(), None);
    (0..PLACES as u64).for_each(|number| helper.submit(number).unwrap());
    assert_eq!(helper.submit(7).unwrap_err().0, 7);
    let missing = Helper::start(HelperCommand::new(Command::new("/no/such/program"))).unwrap_err();
    assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn restarts_dying_process_until_limit_and_counts_ends() {
    let record = Record::new("dies");
    let command = record.shell("echo $$ >> $RECORD; exit 3").restart(Restart::OnFailure, 2);
    let helper = HelperProcess::start(command).unwrap();
    wait(|| helper.report().ends == 3);
    let report = helper.report();
    assert_eq!((report.starts, report.process), (3, None));
    assert_eq!(report.last_end.as_deref(), Some("exit status: 3"));
    assert_eq!(record.lines().len(), 3);
}

#[test]
fn restarts_killed_process_with_its_descendants() {
    let record = Record::new("killed-group");
    let script = "sleep 600 & echo $! >> $RECORD; wait";
    let helper = HelperProcess::start(record.shell(script)).unwrap();
    wait(|| record.lines().len() == 1);
    let descendant = record.lines()[0].clone();
    let process = helper.process().unwrap().cast_signed();
    // SAFETY: the call takes integers. The process is the helper, which runs until it is killed.
    assert_eq!(unsafe { libc::kill(process, libc::SIGKILL) }, 0);
    wait(|| helper.report().starts == 2);
    assert_eq!(helper.report().last_end.as_deref(), Some("signal: 9 (SIGKILL)"));
    // Its new parent may not wait for it.
    wait(|| {
        fs::read_to_string(format!("/proc/{descendant}/stat")).map_or(true, |stat| stat.contains(") Z "))
    });
}

#[test]
fn drop_asks_process_to_end() {
    let record = Record::new("asked");
    let script =
        "trap 'echo ended >> $RECORD; exit' TERM; echo ready >> $RECORD; while :; do sleep 0.01; done";
    let helper = HelperProcess::start(record.shell(script).grace(process::LIMIT)).unwrap();
    wait(|| record.lines().len() == 1);
    let process = helper.process().unwrap();
    drop(helper);
    assert!(!exists(process));
    assert_eq!(record.lines(), ["ready", "ended"]);
}

#[test]
fn drop_kills_process_that_ignores_sigterm() {
    ends_when_dropped("ignores", "trap '' TERM; echo ready >> $RECORD; while :; do sleep 0.01; done");
}

#[test]
fn drop_kills_stopped_process() {
    ends_when_dropped("stopped", "echo ready >> $RECORD; kill -STOP $$");
}

#[test]
fn drop_during_pause_prevents_restart() {
    let record = Record::new("pause");
    let helper = HelperProcess::start(record.shell("exit 1")).unwrap();
    wait(|| helper.report().ends >= 3);
    drop(helper);
}

#[test]
fn drop_ends_process_that_floods_stdout() {
    let record = Record::new("floods");
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "echo ready >> $RECORD; exec yes"]).env(RECORD, &record.0).stdout(writer);
    let helper = HelperProcess::start(HelperCommand::new(command)).unwrap();
    wait(|| record.lines().len() == 1);
    let process = helper.process().unwrap();
    // No thread reads, so the pipe fills up, and the process waits for room.
    wait(|| rustix::io::ioctl_fionread(&reader).unwrap() > 32 << 10);
    drop(helper);
    assert!(!exists(process));
    drop(reader);
}

/// Starts a process that does not end at SIGTERM, and drops it when it is ready.
fn ends_when_dropped(name: &str, script: &str) {
    let record = Record::new(name);
    let helper = HelperProcess::start(record.shell(script).grace(Duration::from_millis(50))).unwrap();
    wait(|| record.lines().len() == 1);
    let process = helper.process().unwrap();
    drop(helper);
    assert!(!exists(process));
}

#[test]
fn rejects_pipe_as_standard_stream() {
    let mut command = Command::new("cat");
    let error = HelperProcess::start(HelperCommand::new({
        command.stdout(Stdio::piped());
        command
    }))
    .unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn limits_resources_of_process() {
    let record = Record::new("limits");
    let command = record.shell("exec sleep 600");
    let command = command.limit(Resource::AddressSpace, 1 << 30).limit(Resource::CpuTime, 9);
    let helper = HelperProcess::start(command.limit(Resource::OpenFiles, 16)).unwrap();
    let limits = fs::read_to_string(format!("/proc/{}/limits", helper.process().unwrap())).unwrap();
    for (name, value) in
        [("Max address space", "1073741824"), ("Max cpu time", "9"), ("Max open files", "16")]
    {
        let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        assert_eq!(line.split_whitespace().take(2).collect::<Vec<_>>(), [value; 2], "{limits}");
    }
}

#[test]
fn environment_is_cleared_or_inherited_as_requested() {
    let record = Record::new("environment");
    let script = format!("tr '\\0' '\\n' < /proc/$$/environ > {}; echo ended >> {0}", record.0.display());
    let environment = |clears: bool| {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &script]).stdin(Stdio::null());
        if clears {
            command.env_clear().env("PATH", "/usr/bin:/bin");
        }
        let _helper = HelperProcess::start(HelperCommand::new(command)).unwrap();
        let lines = record.ended();
        fs::remove_file(&record.0).unwrap();
        lines
    };
    assert_eq!(environment(true), ["PATH=/usr/bin:/bin", "ended"]);
    let inherited = environment(false);
    let name = "CARGO_MANIFEST_DIR";
    let is_name = |line: &String| line.starts_with(name);
    assert_eq!(inherited.iter().any(is_name), std::env::var_os(name).is_some(), "{inherited:?}");
    assert!(inherited.len() > 2, "{inherited:?}");
}

#[test]
fn start_causes_no_page_faults_in_app() {
    let record = Record::new("faults");
    let ended = process::start(record.program("faults")).end();
    assert_eq!(ended.code, 0, "{}", ended.output);
}

#[test]
fn report_of_app_counts_helper_processes() {
    let record = Record::new("app");
    let mut command = record.program("restarting_app");
    command.stdout(Stdio::piped());
    let ended = process::start(command).end();
    let line = "helper process sh: 2 starts, 2 ends that the app had not requested; the last: exit status: 3";
    assert!(ended.output.contains(line), "{}", ended.output);
    let warning = "the helper process sh has ended (exit status: 3)";
    assert!(ended.output.contains(&format!("{warning}; restarts in 0.1 s")), "{}", ended.output);
    assert!(ended.output.contains(&format!("{warning} and is not restarted")), "{}", ended.output);
}

#[test]
fn rejects_requests_of_other_app() {
    let refused = |mut command: Command| {
        let output = command.stdout(Stdio::piped()).output_within(TEST_LIMIT).unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let record = Record::new("refused");
    let mut command = record.program("helper");
    command.stdin(Stdio::null());
    let printed = refused(command);
    assert!(printed.contains("standard input has no requests of an app (it is no memory)"), "{printed}");

    drop(Requester::<[u8; 3], 4>::start(record.helper("helper")).unwrap());
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
        let path = std::env::var_os(RECORD).expect("the test says where");
        fs::File::options().create(true).append(true).open(path).unwrap()
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
    fn dying_helper() {
        let mut record = record();
        for (index, number) in Requests::<u64, PLACES>::inherited().unwrap().enumerate() {
            writeln!(record, "{number}").unwrap();
            if index as u64 + 1 == DYING_AFTER {
                std::process::exit(1);
            }
        }
        writeln!(record, "ended").unwrap();
    }

    /// Compares the page faults of this thread after the start of a helper with those after a fork,
    /// which copies the page tables and write-protects the pages.
    #[test]
    #[ignore = "a program that the other tests run"]
    fn faults() {
        use std::os::unix::process::CommandExt;

        const PAGES: usize = 2048;
        let (page, flags) = (4096, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
        let memory = unsafe {
            libc::mmap(std::ptr::null_mut(), PAGES * page, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        assert_ne!(memory, libc::MAP_FAILED);
        // SAFETY: the range is the mapping. Huge pages would hide the faults.
        unsafe { libc::madvise(memory, PAGES * page, libc::MADV_NOHUGEPAGE) };
        let faults = || {
            let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
            // SAFETY: the pointer is valid for writes; all-zero is a valid value.
            let count = || unsafe {
                libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
                usage.assume_init().ru_minflt
            };
            let mut count = count;
            let before = count();
            for index in 0..PAGES {
                // SAFETY: it is within the mapping, which only this thread uses.
                unsafe { memory.cast::<u8>().add(index * page).write_volatile(1) };
            }
            count() - before
        };
        assert!(faults() >= PAGES as i64);
        let mut command = Command::new("/bin/sleep");
        let helper = HelperProcess::start(HelperCommand::new({
            command.arg("600").env_clear().stdin(Stdio::null());
            command
        }));
        assert!(faults() < PAGES as i64 / 16);
        drop(helper.unwrap());
        assert!(faults() < PAGES as i64 / 16);
        // SAFETY: the closure does nothing.
        let mut forked = unsafe { Command::new("/bin/true").pre_exec(|| Ok(())).spawn().unwrap() };
        assert!(faults() >= PAGES as i64, "a fork copies no page tables, so the test is void");
        forked.status_within(TEST_LIMIT).unwrap();
    }

    #[punctual::app(main = false)]
    mod restarting {
        use std::process::{Command, Stdio};

        use punctual::background::{HelperCommand, HelperProcess, Restart};

        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            helper: HelperProcess,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", "exit 3"]).stdin(Stdio::null()).stdout(Stdio::null());
            let command = HelperCommand::new(command).restart(Restart::OnFailure, 1);
            (Shared {}, Local { helper: HelperProcess::start(command).unwrap() })
        }

        #[idle(local = [helper])]
        fn idle(cx: idle::Context) {
            super::super::wait(|| cx.local.helper.report().ends == 2);
            punctual::shutdown();
        }
    }

    #[test]
    #[ignore = "a program that the other tests run"]
    fn restarting_app() {
        println!("{}", restarting::run(punctual::Config::new()).unwrap());
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
