//! Pulses on GPIO lines are answered in interrupt context, in a kernel thread and by a task: one
//! after the other, as in section 6.1 of Balciunas, and in trains that do not wait for answers, as
//! in section III.A.5 of Cunningham.

use std::path::Path;

use xtask_support::Result;
use xtask_support::cargo::Purpose;
use xtask_support::process::{End, Outcome};

use super::devices::{MODULES, MODULES_COUNTED, NO_MODULES, REMOVED, SIMULATED, STRICT};
use super::{Built, Case, PROGRAMS, Setup, demand, find};
use crate::driver::stage::in_guest;
use crate::kernels::modules;

/// The cases of this file.
pub(super) fn cases(built: Built<'_>) -> Result<Vec<Case>> {
    let program = |name: &str| find(built, Purpose::Example, PROGRAMS, name);
    let (responder, pulses, trains) =
        (program("gpio_responder")?, program("gpio_pulses")?, program("gpio_trains")?);
    let mut cases = vec![sleeping_chip()];
    for form in [Form::Hard, Form::Threaded, Form::Task] {
        cases.push(answered(form, pulses, responder));
        cases.push(answered_in_time(form, trains, responder));
        cases.push(counted_all(form, trains, responder));
    }
    Ok(cases)
}

/// The responder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A module, with its handler in interrupt context.
    Hard,
    /// A module, with its handler in a kernel thread.
    Threaded,
    /// A task of an app.
    Task,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Self::Hard => "in interrupt context",
            Self::Threaded => "in a kernel thread",
            Self::Task => "by a task",
        }
    }

    /// Returns the shell script that starts it, runs `measure`, and finally prints the number of
    /// answered edges. Wires connect line 0 with 1 and 2 with 3 of the chip `$chip`.
    fn around(self, measure: &str, responder: &Path) -> String {
        let module = modules::in_guest("punctual_responder");
        let count = "cat /sys/module/punctual_responder/parameters/answers; rmmod punctual_responder";
        let (begin, end) = match self {
            Self::Hard => (format!("insmod {module} form=hard || exit 9"), count),
            Self::Threaded => (format!("insmod {module} form=threaded || exit 9"), count),
            Self::Task => (
                format!(
                    "{STRICT} {} $chip 1 2 1000000 >said 2>&1 &
        until grep -q ready said || ! kill -0 $!; do sleep 0.1; done",
                    in_guest(responder)
                ),
                "kill -TERM $!; wait $! || { cat said; exit 8; }
        sed -n 's/stopped by SIGTERM after \\([0-9]*\\) edges/\\1/p' said",
            ),
        };
        format!(
            "insmod {} || exit 9
        chip=/dev/$(ls /sys/devices/platform/punctual-wires | grep gpiochip)
        {begin}
        {measure}
        status=$?
        {end}
        rmmod punctual_wires
        exit $status",
            modules::in_guest("punctual_wires")
        )
    }
}

/// The number of pulses that each form must answer before the next one is sent.
const PULSES: u32 = 100;

/// Each pulse is answered once. The sender is an ordinary thread, so the responder runs first, even
/// on one CPU.
fn answered(form: Form, pulses: &Path, responder: &Path) -> Case {
    let measure = format!("{} $chip 0 3 {PULSES} 2000", in_guest(pulses));
    let judge = |outcome: &Outcome| {
        demand(outcome.end == End::Exited(0), "it failed")?;
        let answers = format!("{PULSES} pulses answered, 0 not\n");
        demand(outcome.stdout.starts_with(&answers), "answers are missing")?;
        demand(outcome.stdout.ends_with(&format!("\n{PULSES}\n")), "not every edge was counted once")
    };
    Case::new(
        &format!("pulses answered {}", form.name()),
        MODULES,
        form.around(&measure, responder),
        Some(pulses),
        judge,
    )
    .with(responder)
    .lacking(NO_MODULES)
}

/// The number of pulses in a train, and the periods of Cunningham's tests in µs.
const TRAIN: u64 = 500;
const PERIODS: [u64; 5] = [20, 40, 160, 1000, 2000];

/// Of trains in counted time, from some period on no pulse is missed, and each seems to last for
/// its actual period.
fn answered_in_time(form: Form, trains: &Path, responder: &Path) -> Case {
    let keeps_up = match form {
        Form::Hard => 20,
        // At shorter periods it misses none either, but answers some of them together.
        Form::Threaded => 40,
        Form::Task => 160,
    };
    let judge = move |outcome: &Outcome| {
        for train in all_counted(outcome)? {
            if train.period_us >= keeps_up {
                let at = format!("at {} us", train.period_us);
                demand(train.missed == 0, &format!("pulses were missed {at}"))?;
                demand(train.executes_for_period(), &format!("pulses seem to be longer or shorter {at}"))?;
            }
        }
        Ok(())
    };
    train(form, MODULES_COUNTED, trains, responder, judge)
}

/// In the host's time any pulse may be missed; misses are counted.
fn counted_all(form: Form, trains: &Path, responder: &Path) -> Case {
    let judge = |outcome: &Outcome| all_counted(outcome).map(drop);
    train(form, &[Setup::TWO, Setup::PROBE_TWO], trains, responder, judge)
}

fn train(
    form: Form,
    on: &'static [Setup],
    trains: &Path,
    responder: &Path,
    judge: impl Fn(&Outcome) -> Result + 'static,
) -> Case {
    let periods = PERIODS.map(|period| period.to_string()).join(" ");
    let measure = format!(
        "insmod {} || exit 9
        {} {TRAIN} {periods}
        status=$?
        rmmod punctual_pulses
        (exit $status)",
        modules::in_guest("punctual_pulses"),
        in_guest(trains)
    );
    let script = form.around(&measure, responder);
    Case::new(&format!("trains of pulses answered {}", form.name()), on, script, Some(trains), judge)
        .with(responder)
        .lacking(NO_MODULES)
        .saying(|outcome| {
            let missed = |train: &Train| format!("{} of {} us", train.missed, train.period_us);
            Ok(format!("missed: {}", read(outcome).iter().map(missed).collect::<Vec<_>>().join(", ")))
        })
}

/// The output for a train of pulses.
struct Train {
    period_us: u64,
    sent: u64,
    missed: u64,
    answered: u64,
    /// The times between two answers: longest, mean, deviation and shortest, in ns.
    apart_ns: Option<[u64; 4]>,
}

impl Train {
    fn read(line: &str) -> Option<Self> {
        let (period, rest) = line.split_once(" us: ")?;
        let numbers: Vec<u64> = rest.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
        let (&[sent, missed, answered], apart) = numbers.split_first_chunk()?;
        let apart_ns = apart.try_into().ok();
        Some(Self { period_us: period.parse().ok()?, sent, missed, answered, apart_ns })
    }

    /// Returns `true` if the time between two answers is the period, within a tenth of it or within
    /// the 10 µs by which other code can shift an answer.
    fn executes_for_period(&self) -> bool {
        let period = self.period_us * 1000;
        let slack = (period / 10).max(10_000);
        let [longest, mean, _, shortest] = self.apart_ns.unwrap_or_default();
        mean.abs_diff(period) <= period / 100
            && longest.abs_diff(period) <= slack
            && shortest.abs_diff(period) <= slack
    }
}

fn read(outcome: &Outcome) -> Vec<Train> {
    outcome.stdout.lines().filter_map(Train::read).collect()
}

/// Returns the trains, each pulse of which is answered or missed, and every answer of which the
/// responder has counted.
fn all_counted(outcome: &Outcome) -> Result<Vec<Train>> {
    demand(outcome.end == End::Exited(0), "it failed")?;
    let trains = read(outcome);
    let periods: Vec<u64> = trains.iter().map(|train| train.period_us).collect();
    demand(periods == PERIODS, "trains are missing")?;
    let whole =
        |train: &Train| train.sent == TRAIN && train.answered + train.missed == TRAIN && train.answered > 0;
    demand(trains.iter().all(whole), "pulses are unaccounted for")?;
    let answered: u64 = trains.iter().map(|train| train.answered).sum();
    let printed = outcome.stdout.lines().next_back().and_then(|line| line.parse().ok());
    demand(printed == Some(answered), "the responder has answered other edges")?;
    Ok(trains)
}

/// A handler in interrupt context must not drive a line that may sleep, and the modules reject
/// this.
fn sleeping_chip() -> Case {
    let lines = "in_chip=lab-sim in_line=0 out_chip=lab-sim out_line=1";
    let responder = modules::in_guest("punctual_responder");
    let pulses = modules::in_guest("punctual_pulses");
    let script = format!(
        "{SIMULATED}
        insmod {responder} form=hard {lines} 2>/dev/null && echo loaded
        insmod {pulses} {lines} 2>/dev/null && echo loaded
        insmod {responder} form=threaded in_chip=no-such-chip 2>/dev/null && echo loaded
        # busybox's insmod tries twice.
        dmesg | grep -o 'punctual_[a-z]*: chip lab-sim may sleep\\|no line 1 of a chip labeled no-such-chip' | sort -u
        {REMOVED}"
    );
    let judge = |outcome: &Outcome| {
        let expected = "no line 1 of a chip labeled no-such-chip\n\
                        punctual_pulses: chip lab-sim may sleep\n\
                        punctual_responder: chip lab-sim may sleep\n";
        demand(outcome.stdout == expected, "it was not refused")
    };
    Case::new("modules refuse unfit lines", &[Setup::PROBE_COUNTED], script, None, judge)
}

#[cfg(test)]
mod tests {
    use super::super::{outcome, rejects};
    use super::*;

    #[test]
    fn rejects_wrong_number_of_answers() {
        rejects(
            answered(Form::Hard, Path::new("/x"), Path::new("/y")).judge,
            "100 pulses answered, 0 not\nlatency: x\n100\n",
            &[("100 pulses answered, 0", "99 pulses answered, 1"), ("\n100\n", "\n101\n")],
        );
    }

    /// Returns the output for trains if `missed` pulses of each are missed, and the time between
    /// two answers is off by that many ns.
    fn printed(missed: [u64; 5], off_ns: u64) -> String {
        let line = |(period, missed): (u64, u64)| {
            let ns = period * 1000;
            format!(
                "{period} us: 500 sent, {missed} missed, {} answered; apart: longest {} ns, mean {ns} ns, \
                 deviation 7 ns, shortest {} ns\n",
                500 - missed,
                ns + off_ns,
                ns - off_ns
            )
        };
        let answered = 2500 - missed.iter().sum::<u64>();
        PERIODS.into_iter().zip(missed).map(line).collect::<String>() + &format!("{answered}\n")
    }

    #[test]
    fn rejects_missed_pulse() {
        let judge = |form| answered_in_time(form, Path::new("/x"), Path::new("/y")).judge;
        let (hard, task) = (judge(Form::Hard), judge(Form::Task));
        hard(&outcome(&printed([0; 5], 900), "")).unwrap();
        let fast = outcome(&printed([300, 200, 0, 0, 0], 900), "");
        task(&fast).unwrap();
        assert!(hard(&fast).is_err());
        for wrong in [printed([0, 0, 1, 0, 0], 900), printed([0; 5], 17_000)] {
            assert!(task(&outcome(&wrong, "")).is_err());
        }
    }

    #[test]
    fn accounts_for_every_pulse() {
        let good = printed([499, 0, 0, 0, 7], 900);
        rejects(
            counted_all(Form::Task, Path::new("/x"), Path::new("/y")).judge,
            &good,
            &[
                ("1994\n", "1995\n"),
                ("1994\n", ""),
                ("7 missed", "6 missed"),
                (&good, &printed([500, 0, 0, 0, 0], 900)),
                (&good, "0\n"),
            ],
        );
    }
}
