//! A run: performs the steps of the chosen suites.

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use crate::activity::Observation;
use crate::clock::{self, Clock};
use crate::machine::{self, Machine};
use crate::model::{FORMAT, Run, RunSettings, Suite, VERSION};
use crate::options::{BadOptions, Options, Plan};
use crate::recorder::Recorder;
use crate::rt::{self, SetUpFailed};
use crate::session::{Progress, Session, Step};
use crate::stats::{Distribution, Statistics};
use crate::suites::Registration;
use crate::{Stop, suites};

/// Runs the suites in `options` until done or until `stop` is requested.
///
/// No change to the system outlives the run: priorities and affinities end with its threads, the
/// limit on real-time CPU time with the process, and the hourglass removes its tracer instance,
/// including that of an earlier run that was killed.
///
/// # Errors
///
/// [`BadOptions`] if the options are invalid here; in that case nothing has been measured.
pub fn run(options: &Options, stop: &Stop, progress: &dyn Progress) -> Result<Run, BadOptions> {
    let plan = Plan::new(options)?;
    let suites = suites::chosen(&options.suites);
    if suites.iter().all(|suite| steps(suite, &plan).is_empty()) {
        let steps = suites.iter().map(|suite| names(suite, &plan)).collect::<Vec<_>>().join("\n");
        return Err(BadOptions::NoSuchStep { only: plan.only, steps });
    }
    let begun = Instant::now();
    let clock = clock::use_best();
    rt::limit_runaways(longest_without_sleep(&plan));
    let _locked = rt::LockedMemory::new();
    let awake = rt::Awake::new();
    let mut machine = Machine::read(plan.cpu, &clock);
    machine.notes.push(awake.note());
    let no_fifo = machine.fifo_refused.clone();
    let mut run = Run {
        format: FORMAT.into(),
        version: VERSION,
        started: now_utc(),
        took_s: 0.0,
        interrupted: false,
        settings: RunSettings {
            samples: plan.samples,
            quick: plan.quick,
            cpu: plan.cpu,
            other_cpu: plan.other_cpu,
            hourglass_s: plan.hourglass.as_secs_f64(),
            load: plan.load.as_str().into(),
        },
        machine,
        overhead: overhead(&plan, &clock),
        suites: Vec::new(),
    };
    progress.begins(&run);
    for registration in &suites {
        if stop.is_requested() {
            run.interrupted = true;
            break;
        }
        let suite_begun = Instant::now();
        let stolen = machine::stolen_s();
        let suite = Suite {
            name: registration.name.as_str().into(),
            title: registration.title.into(),
            ..Suite::default()
        };
        let mut session = Session { plan: &plan, clock, stop, no_fifo: no_fifo.clone(), suite };
        let steps = steps(registration, &plan);
        progress.suite(registration.name, steps.len());
        for step in steps {
            if stop.is_requested() {
                run.interrupted = true;
                session.note("Ended before it was through.");
                break;
            }
            progress.step(&step.what);
            perform(step, &mut session);
        }
        let mut suite = session.suite;
        suite.took_s = seconds(suite_begun);
        suite.stolen_s = stolen.zip(machine::stolen_s()).map(|(before, after)| after - before);
        // Ordered by rule, so that the subjects of a rule are shown together.
        let rules: Vec<String> = suite.checks.iter().map(|check| check.rule.clone()).collect();
        suite.checks.sort_by_key(|check| rules.iter().position(|rule| *rule == check.rule));
        progress.suite_done(&suite);
        run.suites.push(suite);
    }
    run.interrupted |= stop.is_requested();
    run.took_s = seconds(begun);
    Ok(run)
}

/// An empty measurement: the clock's own share of every figure.
fn overhead(plan: &Plan, clock: &Clock) -> Distribution {
    let recorder = Recorder::new(plan.samples as usize);
    let measure = || {
        loop {
            let from = clock::now();
            let to = clock::now();
            if !recorder.push(black_box(to - from)) {
                break;
            }
        }
    };
    if rt::try_on_thread(plan.cpu, rt::PRIORITY, |_| measure()).is_err() {
        measure();
    }
    let mut statistics = Statistics::new();
    recorder.values().for_each(|ticks| statistics.record_ps(clock.ps(ticks)));
    statistics.distribution().expect("there is at least one sample")
}

/// Threads that a step may need at once. In some steps one waits for another, which must start.
const STEP_THREADS: usize = 8;

/// Runs a step, or notes that it was not measured because its set-up failed.
fn perform(step: Step, session: &mut Session<'_>) {
    let Step { what, run } = step;
    // A step that is to run on an idle machine states it in its name.
    let observation = what.ends_with(", idle").then(Observation::begin);
    let (first_row, first_answer) = (session.rows(), session.suite.answers.len());
    let ready = rt::try_threads(STEP_THREADS).map_err(|error| SetUpFailed::no_thread(&error));
    let attempt = ready.and_then(|()| {
        let result = catch_unwind(AssertUnwindSafe(|| run(session)));
        result.map_err(|payload| match payload.downcast::<SetUpFailed>() {
            Ok(failed) => *failed,
            Err(payload) => resume_unwind(payload),
        })
    });
    if let Err(SetUpFailed(why)) = attempt {
        session.note(format!("{what}: not measured: {why}"));
    }
    let Some(window) = observation.map(|observation| observation.end(&what)) else { return };
    for row in session.rows_since(first_row) {
        row.disturbed.clone_from(&window.disturbed);
    }
    for answer in &mut session.suite.answers[first_answer..] {
        answer.disturbed.clone_from(&window.disturbed);
    }
    session.suite.windows.push(window);
}

/// Returns the requested steps of a suite.
fn steps(suite: &Registration, plan: &Plan) -> Vec<Step> {
    let mut steps = (suite.steps)(plan);
    let only: Vec<String> = plan.only.iter().map(|text| text.to_lowercase()).collect();
    steps.retain(|step| {
        let name = step.what.to_lowercase();
        only.is_empty() || only.iter().any(|text| name.contains(text))
    });
    steps
}

/// Returns a line with the names of all steps of a suite.
fn names(suite: &Registration, plan: &Plan) -> String {
    let names: Vec<String> = (suite.steps)(plan).into_iter().map(|step| step.what).collect();
    format!("  {}: {}", suite.name.as_str(), names.join("; "))
}

/// Returns the time for which a measuring thread may run without sleeping: the duration of the
/// longest measurement, plus a margin.
fn longest_without_sleep(plan: &Plan) -> Duration {
    const TIME_PER_SAMPLE: Duration = Duration::from_micros(50);
    plan.hourglass + TIME_PER_SAMPLE * plan.samples + Duration::from_secs(5)
}

/// Returns the elapsed seconds, to a millisecond.
fn seconds(since: Instant) -> f64 {
    since.elapsed().as_millis() as f64 / 1e3
}

/// Returns the current time in UTC, in RFC 3339 format.
fn now_utc() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    utc(since.as_secs())
}

/// Converts seconds since the start of 1970 to a date and a time of day.
fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // The days of the Gregorian calendar from a year that starts in March, by eras of 400 years (H.
    // Hinnant, "chrono-compatible low-level date algorithms").
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use punctual_process::child::{BoundedCommand, TEST_LIMIT};

    use super::*;
    use crate::{Options, Silent};

    /// Runs the test of this name once more, in a process that starts no more threads.
    const REFUSED: &str = "PUNCTUAL_TEST_THREADS_REFUSED";

    #[test]
    fn notes_steps_without_threads() {
        if std::env::var_os(REFUSED).is_some() {
            return measure_without_threads();
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        let test = "run::tests::notes_steps_without_threads";
        let output = command.args(["--exact", test]).env(REFUSED, "1").output_within(TEST_LIMIT).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }

    fn measure_without_threads() {
        refuse_threads();
        let only = vec!["priority inversion, punctual-sync".to_owned()];
        let options =
            Options { suites: vec![suites::behavior::NAME], quick: true, only, ..Options::default() };
        let run = run(&options, &Stop::default(), &Silent).expect("the options are valid");
        let suite = &run.suites[0];
        assert!(suite.checks.is_empty() && suite.rows.is_empty(), "{suite:?}");
        let note = "priority inversion, punctual-sync: not measured: no thread can be started";
        assert!(suite.notes.iter().any(|line| line.starts_with(note)), "{:?}", suite.notes);
    }

    #[test]
    fn notes_steps_whose_set_up_failed() {
        let plan = Plan::new(&Options::default()).unwrap();
        let (clock, stop) = (clock::use_best(), Stop::default());
        let suite = Suite::default();
        let mut session = Session { plan: &plan, clock, stop: &stop, no_fifo: None, suite };
        let step = Step::new("an instant, load", |_| SetUpFailed("the load did not start".into()).end_step());
        perform(step, &mut session);
        assert_eq!(session.suite.notes, ["an instant, load: not measured: the load did not start"]);
        assert!(session.suite.rows.is_empty());
    }

    /// Makes the kernel refuse threads to this process, as `pids.max` of a cgroup does.
    fn refuse_threads() {
        let statement = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
        let is_call = |call: libc::c_long, jt| {
            statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, jt, 0, call as u32)
        };
        let filter = [
            // The number of the system call is the first word of `struct seccomp_data`.
            statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
            is_call(libc::SYS_clone3, 2),
            is_call(libc::SYS_clone, 1),
            statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
            statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EAGAIN as u32),
        ];
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
        // SAFETY: the kernel copies the program, which is valid and returns on every path.
        let is_refused = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) != 0
        };
        assert!(!is_refused, "{}", std::io::Error::last_os_error());
    }

    #[test]
    fn formats_dates() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_826_154), "2000-02-29T12:09:14Z");
        assert_eq!(utc(1_798_761_599), "2026-12-31T23:59:59Z");
    }
}
