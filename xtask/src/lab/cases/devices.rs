//! Events of devices release tasks: edges of GPIO lines, frames on a CAN bus; and tasks talk to a device on SPI.

use std::path::Path;

use super::{Case, On, PROGRAMS, demand, find};
use crate::Result;
use crate::cargo::{Artifact, Purpose};
use crate::lab::modules;
use crate::lab::stage::in_guest;
use crate::process::{End, Outcome};

const BOTH: &[On] = &[On::ProbeCounted, On::ProbeTwo];

/// How many pulses each form of responder has to answer.
const PULSES: u32 = 100;

/// Who answers pulses, and how it is set up in a shell.
#[derive(Clone, Copy)]
enum Responder {
    /// A module, its handler in interrupt context.
    Hard,
    /// A module, its handler in a thread of the kernel.
    Threaded,
    /// A task of an app.
    Task,
}

/// The cases of this file.
pub(super) fn cases(built: &[Artifact]) -> Result<Vec<Case>> {
    let program = |name: &str| find(built, Purpose::Example, PROGRAMS, name);
    let responder = program("gpio_responder")?;
    let pulses = program("gpio_pulses")?;
    Ok(vec![
        edge(responder),
        answered(Responder::Hard, pulses, responder),
        answered(Responder::Threaded, pulses, responder),
        answered(Responder::Task, pulses, responder),
        sleeping_chip(),
        spi(program("spi_exchange")?),
        can(program("can_frames")?),
    ])
}

/// Every setting has to apply, or the app does not start.
const STRICT: &str = "PUNCTUAL_STRICT=1";

/// An edge that the kernel simulates releases a task, which drives another line.
fn edge(responder: &Path) -> Case {
    let script = format!(
        "{SIMULATED}
        {STRICT} {responder} /dev/$chip 0 1 5 >said 2>&1 &
        until grep -q ready said || ! kill -0 $!; do sleep 0.1; done
        for n in 1 2 3 4 5; do
            echo pull-up >$lines/sim_gpio0/pull
            sleep 0.02
            echo pull-down >$lines/sim_gpio0/pull
            sleep 0.02
        done
        wait $!
        status=$?
        grep -v between said
        {REMOVED}
        exit $status",
        responder = in_guest(responder)
    );
    let judge = |outcome: &Outcome| {
        demand(outcome, outcome.end == End::Exited(0), "the app failed")?;
        demand(outcome, outcome.stdout == "ready\nshut down after 5 edges\n", "other jobs ran than expected")
    };
    Case::new("GPIO edge releases a task", BOTH, script, Some(responder), Box::new(judge))
}

/// Makes a chip of two simulated lines: `$chip` its name, `$lines` the directory of its lines.
const SIMULATED: &str = "bank=/sys/kernel/config/gpio-sim/lab/bank
        mkdir -p $bank && echo 2 >$bank/num_lines && echo lab-sim >$bank/label && echo 1 >${bank%/bank}/live || exit 9
        chip=$(cat $bank/chip_name)
        lines=/sys/devices/platform/$(cat ${bank%/bank}/dev_name)/$chip";

/// Removes it again.
const REMOVED: &str = "echo 0 >${bank%/bank}/live; rmdir $bank ${bank%/bank}";

/// Pulses on a wired pair of lines are answered on another one by each form of responder.
fn answered(form: Responder, pulses: &Path, responder: &Path) -> Case {
    let wires = modules::in_guest("punctual_wires");
    let module = modules::in_guest("punctual_responder");
    let (name, begin, end) = match form {
        Responder::Hard => (
            "pulses answered in interrupt context",
            format!("insmod {module} form=hard || exit 9"),
            "cat /sys/module/punctual_responder/parameters/answers; rmmod punctual_responder".to_owned(),
        ),
        Responder::Threaded => (
            "pulses answered in a kernel thread",
            format!("insmod {module} form=threaded || exit 9"),
            "cat /sys/module/punctual_responder/parameters/answers; rmmod punctual_responder".to_owned(),
        ),
        Responder::Task => (
            "pulses answered by a task",
            format!(
                "{STRICT} {} $chip 1 2 {PULSES} >said 2>&1 &
                until grep -q ready said || ! kill -0 $!; do sleep 0.1; done",
                in_guest(responder)
            ),
            "wait $! || { cat said; exit 8; }; sed -n 's/shut down after \\([0-9]*\\) edges/\\1/p' said"
                .to_owned(),
        ),
    };
    // The pulses come from an ordinary thread, so whoever answers comes first, also on one CPU.
    let script = format!(
        "insmod {wires} || exit 9
        chip=/dev/$(ls /sys/devices/platform/punctual-wires | grep gpiochip)
        {begin}
        {} $chip 0 3 {PULSES} 2000
        status=$?
        {end}
        rmmod punctual_wires
        exit $status",
        in_guest(pulses)
    );
    let judge = |outcome: &Outcome| {
        demand(outcome, outcome.end == End::Exited(0), "it failed")?;
        let answers = format!("{PULSES} pulses answered, 0 not\n");
        demand(outcome, outcome.stdout.starts_with(&answers), "answers are missing")?;
        demand(outcome, outcome.stdout.ends_with(&format!("\n{PULSES}\n")), "not every edge was counted once")
    };
    let mut case = Case::new(name, BOTH, script, Some(pulses), Box::new(judge));
    case.programs.push(responder.to_owned());
    case
}

/// A handler in interrupt context must not drive a line that may sleep, and the responder says so.
fn sleeping_chip() -> Case {
    let script = format!(
        "{SIMULATED}
        insmod {} form=hard in_chip=lab-sim in_line=0 out_chip=lab-sim out_line=1 2>/dev/null && echo loaded
        insmod {} form=threaded in_chip=no-such-chip 2>/dev/null && echo loaded
        # busybox's insmod tries twice.
        dmesg | grep -o 'chip lab-sim may sleep\\|no line 1 of a chip labelled no-such-chip' | sort -u
        {REMOVED}",
        modules::in_guest("punctual_responder"),
        modules::in_guest("punctual_responder"),
    );
    let judge = |outcome: &Outcome| {
        let expected = "chip lab-sim may sleep\nno line 1 of a chip labelled no-such-chip\n";
        demand(outcome, outcome.stdout == expected, "it was not refused")
    };
    Case::new("a responder refuses unfit lines", &[On::ProbeCounted], script, None, Box::new(judge))
}

/// A task exchanges frames through spidev.
fn spi(program: &Path) -> Case {
    let module = modules::in_guest("punctual_spi");
    let script = format!(
        "insmod {module} || exit 9
        {STRICT} {} $(ls /dev/spidev*) 50 2>/dev/null
        status=$?
        rmmod punctual_spi
        exit $status",
        in_guest(program)
    );
    let judge = |outcome: &Outcome| {
        demand(outcome, outcome.end == End::Exited(0), "the app failed")?;
        demand(outcome, outcome.stdout == "shut down after 50 exchanges\n", "exchanges are missing")
    };
    Case::new("SPI exchange through spidev", BOTH, script, Some(program), Box::new(judge))
}

/// Frames release a task.
fn can(program: &Path) -> Case {
    let script = format!(
        "ip link add vcan0 type vcan && ip link set vcan0 up || exit 9
        {STRICT} {} vcan0 50
        status=$?
        ip link del vcan0
        exit $status",
        in_guest(program)
    );
    let judge = |outcome: &Outcome| {
        demand(outcome, outcome.end == End::Exited(0), "the app failed")?;
        demand(outcome, outcome.stdout == "shut down after 50 frames\n", "frames are missing")
    };
    Case::new("CAN frame releases a task", BOTH, script, Some(program), Box::new(judge))
}

#[cfg(test)]
mod tests {
    use super::super::outcome;
    use super::*;

    #[test]
    fn an_edge_too_few_is_refused() {
        let judge = edge(Path::new("/x")).judge;
        judge(&outcome("ready\nshut down after 5 edges\n", "")).unwrap();
        assert!(judge(&outcome("ready\nshut down after 4 edges\n", "")).is_err());
    }

    #[test]
    fn an_answer_too_few_or_too_many_is_refused() {
        let judge = answered(Responder::Hard, Path::new("/x"), Path::new("/y")).judge;
        judge(&outcome("100 pulses answered, 0 not\nlatency: x\n100\n", "")).unwrap();
        assert!(judge(&outcome("99 pulses answered, 1 not\nlatency: x\n99\n", "")).is_err());
        assert!(judge(&outcome("100 pulses answered, 0 not\nlatency: x\n101\n", "")).is_err());
    }

    #[test]
    fn missing_exchanges_and_frames_are_refused() {
        let (spi, can) = (spi(Path::new("/x")).judge, can(Path::new("/x")).judge);
        spi(&outcome("shut down after 50 exchanges\n", "")).unwrap();
        assert!(spi(&outcome("shut down after 49 exchanges\n", "")).is_err());
        can(&outcome("shut down after 50 frames\n", "")).unwrap();
        assert!(can(&outcome("", "")).is_err());
    }
}
